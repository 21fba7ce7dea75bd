"""The language of a text, by a model whose labels are languages."""

import pytest

from tests.pipelines.small_models import languages_run
from textmill.pipelines import LanguageIdentifier
from textmill.pipelines.language_identifier import MOST


@pytest.fixture(scope="module")
def identify():
    return LanguageIdentifier(languages_run(), device="cpu")


def test_the_label_is_the_language(identify):
    found = identify(["Die Netze sind tief.", "The nets are deep."])
    assert [str(one) for one in found] == ["de", "en"]
    assert all(0.5 < one.score <= 1 for one in found)
    assert found[0].row().keys() == {"text", "language", "score"}


@pytest.mark.parametrize("text", ["", "12:30", "\u2026 \u2713"])
def test_a_text_without_letters_has_no_language(identify, text):
    assert identify(text).row() == {"text": text, "language": "und", "score": 0}


def test_the_beginning_of_a_long_text_is_read(identify):
    long = "Die Netze sind tief. " * (MOST // 21) + "The nets are deep. " * 1000
    assert (identify(long).language, len(identify(long).text)) == ("de", len(long))


def test_the_model_that_ships_knows_languages_by_a_few_words():
    texts = {
        "de": "Wo ist der Bahnhof, bitte?",
        "en": "Where is the station, please?",
        "fr": "Où est la gare, s'il vous plaît ?",
        "it": "Dov'è la stazione, per favore?",
        "ja": "駅はどこにありますか。教えてください。",
        "ru": "Скажите, пожалуйста, где вокзал?",
        "tr": "İstasyon nerede, lütfen söyler misiniz?",
    }
    found = LanguageIdentifier()([*texts.values()])
    assert [one.language for one in found] == [*texts]


@pytest.mark.parametrize(("text", "language"), [("한국어", "ko"), ("yes", "en"), ("שלום", "he")])
def test_single_letters_tell_the_script(text, language):
    assert LanguageIdentifier()(text).language == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("私のお金はどこですか", "ja"),
        ("東京都庁の移転計画", "ja"),
        ("我的钱在哪里,我很喜欢の这个字", "zh"),
    ],
)
def test_chinese_characters_with_kana_are_japanese(text, language):
    assert LanguageIdentifier()(text).language == language
