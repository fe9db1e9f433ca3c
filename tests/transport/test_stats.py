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
