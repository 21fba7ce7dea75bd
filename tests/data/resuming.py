"""Batches that go on from every place as if they had not been stopped."""


def resumed_everywhere(make, epochs, *, plain=lambda batch: batch, has_length=True):
    """The maker of batches after some epochs, and the batches of each, as ``plain`` makes them.

    Resumed at every state that it had, another of its kind gives the batches that were left.
    """
    straight, given, places = make(), [[] for _ in range(epochs)], []
    for epoch in range(epochs):
        assert straight.epoch == epoch
        length = len(straight)
        places.append((sum(map(len, given)), straight.state_dict()))
        for batch in straight:
            given[epoch].append(plain(batch))
            places.append((sum(map(len, given)), straight.state_dict()))
        assert not has_length or len(given[epoch]) == length
    every = [batch for batches in given for batch in batches]
    for count, state in places:
        resumed, rest = make(), []
        resumed.load_state_dict(state)
        while resumed.epoch < epochs:
            rest += map(plain, resumed)
        assert rest == every[count:], state
    return straight, given
