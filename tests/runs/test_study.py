from textmill.runs.study import Study


def test_an_interrupted_trial_is_taken_again_with_what_was_proposed(tmp_path):
    import optuna

    spaces = {"size": optuna.distributions.CategoricalDistribution([1, 2])}

    def opened():
        sampler = optuna.samplers.RandomSampler
        return Study(tmp_path, "all", 2, spaces, lambda number: sampler(seed=number), what="It")

    first = opened().take()
    again = opened()
    taken = again.take()
    assert (taken.number, taken.params) == (first.number, first.params)
    again.tell(taken.number, 1.0)
    again.tell(again.take().number, 2.0)
    assert again.take() is None
    assert [trial.value for trial in again.trials] == [1.0, 2.0]
