"""The website of the documentation: its order, its links, and the files that its pages load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from functions import page
from tests.gate.scripts import ROOT, load

site = load("site")


def test_one_declaration_orders_the_site_and_the_docs_of_the_page() -> None:
    """The groups of docs/index.md are those of the navigation; docs.json, which the page shows, has the same order."""
    listed = [path for group in site.groups() for _, path in group.pages]
    assert [group.title for group in site.groups()] == ["Tutorials", "How-to guides", "Reference", "Explanation"]
    assert len(listed) == len(set(listed))
    own = [Path(path).stem for path in listed if Path(path).parent == Path("docs")]
    assert list(json.loads(page._manual())) == ["index", *own]
    titles = [next(iter(each)) for each in site.navigation()]
    assert titles == ["Documentation", "What Trainyard is", *(group.title for group in site.groups()), "Trainers"]


def test_links_lead_within_the_site_or_to_the_source() -> None:
    """Links to pages follow the site's layout, pictures come from their folder, and repository files from --source."""
    where = site.places()
    text = site.page_of("README.md", "https://example.org/main", where)
    assert "(page-run.png)" not in text
    assert "(pictures/page-run.png)" in text
    assert "(azure.md)" in text
    assert "(https://example.org/main/LICENSE)" in site.page_of("CONTRIBUTING.md", "https://example.org/main", where)
    assert "(../LICENSE)" not in site.page_of("CONTRIBUTING.md", "", where)


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    """The dead link is refused before the generator reads the page."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[gone](gone.md)")
    with pytest.raises(site.SiteFault, match=r"docs/index\.md links to docs/gone\.md, which does not exist"):
        site.page_of("docs/index.md", "", {"docs/index.md": "index.md"}, tmp_path)


def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Strict mode allows no dead link or anchor. Every page is present and searchable, and loads only files of the
    site. The selector lists the version."""
    try:
        folder = site.build(tmp_path / "out", "", "1.2", ROOT / ".trainyard" / "site")
    except site.NoRegistry as fault:
        pytest.skip(f"THE WEBSITE OF THE DOCUMENTATION IS NOT TESTED: {fault}")
    assert folder == tmp_path / "out" / "1.2"
    assert [each["version"] for each in json.loads((tmp_path / "out" / "versions.json").read_text())] == ["1.2"]
    pages = [folder / Path(place).with_suffix(".html") for place in site.places().values()]
    assert [path for path in pages if not path.is_file()] == []
    assert list(site.loaded_from_elsewhere(folder)) == []
    assert "exactly one run" in (folder / "search.json").read_text("utf-8")
    index = (folder / "index.html").read_text("utf-8")
    assert "Switch to dark mode" in index
