import warnings

from textmill.runs.study import Study


def test_a_sampler_that_has_proposed_all_there_is_ends_the_search(tmp_path):
    import optuna

    def sampler(number):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return optuna.samplers.BruteForceSampler(seed=number)

    study = Study(tmp_path, "all", 20, sampler, what="A search")
    while (trial := study.take()) is not None:
        study.tell(trial.number, float(trial.suggest_categorical("size", [1, 2])))
    assert sorted(trial.value for trial in study.trials) == [1.0, 2.0]
