"""Statistics as text and as HTML tables."""

import numpy as np

import sparcml


def test_statistics_print_as_tables():
    def body(comm):
        comm.allreduce(np.ones(1000, np.float32), algorithm="ring")
        return comm.stats

    stats = sparcml.launch(body, 2)[0]
    lines = str(stats).splitlines()
    assert lines[0].split() == ["messages", "bytes"]
    assert lines[1].split() == ["sent", f"{stats.messages:,}", f"{stats.bytes:,}"]
    assert any(line.split()[:2] == ["ring", "1"] for line in lines)
    html = stats._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 3
    assert f"<td>{stats.bytes:,}</td>" in html


def test_computed_bytes_are_part_of_all_bytes_and_say_so():
    def body(comm):
        comm.allreduce(np.ones(100_000, np.float32), algorithm="native")
        return comm.stats

    for stats in sparcml.launch(body, 8):
        assert stats.computed_bytes == 7 * 100_000  # 2 (P - 1) / P of the vector
        agreement = 32 * (1 + 2 + 4)  # headers
        assert stats.bytes == stats.computed_bytes + agreement
        assert stats.received_bytes == stats.bytes
        assert "computed_bytes=700000" in repr(stats)
        assert ["of", "both,", "computed", "700,000"] in [
            line.split() for line in str(stats).splitlines()
        ]
        assert "<td>of both, computed</td>" in stats._repr_html_()
        stats.reset()
        assert (stats.bytes, stats.computed_bytes) == (0, 0)
        assert "computed" not in str(stats)
