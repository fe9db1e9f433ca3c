"""The table of other programs: the first to a loss, whatever its setting."""

from peers import table


def row(peer, *curves, data="spam"):
    kept = [
        {"setting": name, "passes": [1, 2], "seconds": seconds, "losses": losses}
        for name, seconds, losses in curves
    ]
    about = {
        "name": peer,
        "version": "1" if curves else "",
        "threads": "1",
        "held": "",
        "runs": 3,
    }
    return {"peer": peer, "data": data, "reading": 0.5, "curves": kept, **about}


ROWS = [
    row("ours", ("a", [1.0, 2.0], [0.4, 0.21])),
    row("saga", ("slow", [3.0, 8.0], [0.5, 0.2]), ("fast", [2.0, 4.0], [0.3, 0.201])),
    row("spark"),
    row("liblinear", ("only", [1.0, 2.0], [0.5, 0.4])),
]


def test_the_fastest_setting_to_a_loss_counts():
    assert table.fastest(ROWS[1], 0.25) == (4.0, 2, "fast")
    assert table.fastest(ROWS[1], 0.2) == (8.0, 2, "slow")
    assert table.fastest(ROWS[1], 0.1) is None
    assert table.best(ROWS[1]) == 0.2


def test_each_program_is_compared_at_its_own_best_loss():
    ours, saga, spark, liblinear = table.lines(ROWS)
    assert liblinear[4:] == [
        "0.4000",
        "`only`",
        "2",
        "3",
        "2.00",
        "1.00",
        "2.0x",
        "not reached",
    ]
    assert saga[5:] == ["`fast`", "2", "3", "4.00", "not reached", "", "4.00"]
    assert ours[-1] == "not reached"
    assert spark[3] == "not installed"
    assert {len(line) for line in (ours, saga, spark, liblinear)} == {len(table.HEAD)}
