"""Where and when: phrases that translate as a whole."""

WHEN = {
    "present": {
        "every day": "tous les jours",
        "every morning": "tous les matins",
        "every evening": "tous les soirs",
        "every week": "toutes les semaines",
        "on Mondays": "le lundi",
        "on Fridays": "le vendredi",
        "on Sundays": "le dimanche",
        "in summer": "en été",
        "in winter": "en hiver",
        "in spring": "au printemps",
    },
    "past": {
        "yesterday": "hier",
        "yesterday morning": "hier matin",
        "yesterday evening": "hier soir",
        "last week": "la semaine dernière",
        "last month": "le mois dernier",
        "last year": "l'année dernière",
        "last Monday": "lundi dernier",
        "last Friday": "vendredi dernier",
        "last Sunday": "dimanche dernier",
        "last summer": "l'été dernier",
        "this morning": "ce matin",
    },
    "future": {
        "tomorrow": "demain",
        "tomorrow morning": "demain matin",
        "tomorrow evening": "demain soir",
        "next week": "la semaine prochaine",
        "next month": "le mois prochain",
        "next year": "l'année prochaine",
        "next Monday": "lundi prochain",
        "next Friday": "vendredi prochain",
        "next Sunday": "dimanche prochain",
        "next summer": "l'été prochain",
        "this evening": "ce soir",
    },
}

# Where one works, sleeps or sings.
PLACES = {
    "in the kitchen": "dans la cuisine",
    "in the garden": "dans le jardin",
    "in the street": "dans la rue",
    "in the living room": "dans le salon",
    "in the forest": "dans la forêt",
    "in the park": "dans le parc",
    "at home": "à la maison",
    "on the beach": "sur la plage",
    "under the bridge": "sous le pont",
    "behind the wall": "derrière le mur",
    "in Paris": "à Paris",
    "in the village": "au village",
}

# The hours that are not counted in full: noon and one o'clock.
HOURS = {
    "at one o'clock": "à une heure",
    "at noon": "à midi",
    "at midnight": "à minuit",
    "at half past one": "à une heure et demie",
}

# Where a thing lies; where food does; where an animal or a plant is.
_KITCHEN = {"in the kitchen": "dans la cuisine", "in the cellar": "dans la cave"}
_ROOMS = {
    **_KITCHEN,
    "in the living room": "dans le salon",
    "in the attic": "dans le grenier",
    "in the bedroom": "dans la chambre",
}
_OUTSIDE = {
    "in the garden": "dans le jardin",
    "in the street": "dans la rue",
    "in the park": "dans le parc",
    "in the forest": "dans la forêt",
}
ROOMS = {"OLC": _ROOMS, "F": _KITCHEN, "AN": _OUTSIDE}

# Country or town: where one is or goes, and where one comes from.
REGIONS = {
    "France": ("en France", "de France"),
    "Italy": ("en Italie", "d'Italie"),
    "Spain": ("en Espagne", "d'Espagne"),
    "Germany": ("en Allemagne", "d'Allemagne"),
    "Japan": ("au Japon", "du Japon"),
    "Canada": ("au Canada", "du Canada"),
    "Portugal": ("au Portugal", "du Portugal"),
    "the United States": ("aux États-Unis", "des États-Unis"),
    "Paris": ("à Paris", "de Paris"),
    "Lyon": ("à Lyon", "de Lyon"),
}

# What one plays: an instrument after de, a game after à.
INSTRUMENTS = {
    "the guitar": "de la guitare",
    "the piano": "du piano",
    "the violin": "du violon",
    "the harp": "de la harpe",
    "the organ": "de l'orgue",
    "football": "au football",
    "tennis": "au tennis",
    "cards": "aux cartes",
    "chess": "aux échecs",
}
