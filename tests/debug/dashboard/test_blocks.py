"""The blocks that pages of the dashboard are made of."""

from wharfinger.debug.dashboard.blocks import Facts, Folded, Items, Picture, Preformatted, Table


def test_each_kind_of_block_has_its_own_name_in_templates() -> None:
    lines = Preformatted("a", (), "", "k")
    every = (Table("", (), (), ""), Facts(()), Items((), ""), lines, Picture("", "", ""), Folded("k", "", lines))
    assert len({block.kind for block in every}) == len(every)
