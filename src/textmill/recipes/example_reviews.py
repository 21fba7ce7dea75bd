"""Generated reviews with stars: rows that a task of one's own can begin with."""

import random
from collections.abc import Mapping

THINGS = ("soup", "bread", "service", "room", "view", "music", "coffee", "fish", "wine", "price")
WORDS: Mapping[int, tuple[str, ...]] = {
    -2: ("awful", "terrible", "inedible"),
    -1: ("poor", "dull", "slow"),
    0: ("usual", "fine", "there"),
    1: ("good", "nice", "pleasant"),
    2: ("superb", "wonderful", "perfect"),
}
"""What is said of a thing, by what it is worth."""


def generate_reviews(sizes: Mapping[str, int]) -> dict[str, list[tuple[str, str]]]:
    """Pairs of stars, 1 to 5, and a review of one or two things.

    The stars are 3 and the mean of what its words are worth, rounded half up.
    """
    draw = random.Random(1)  # noqa: S311  # no secret
    found: dict[str, str] = {}
    while len(found) < sum(sizes.values()):
        things = draw.sample(THINGS, draw.randint(1, 2))
        worth = [draw.randint(-2, 2) for _ in things]
        said = [
            f"the {thing} was {draw.choice(WORDS[value])}"
            for thing, value in zip(things, worth, strict=True)
        ]
        stars = 3 + (2 * sum(worth) + len(worth)) // (2 * len(worth))
        found.setdefault(", ".join(said), str(stars))
    rows = iter((stars, text) for text, stars in found.items())
    return {part: [next(rows) for _ in range(size)] for part, size in sizes.items()}
