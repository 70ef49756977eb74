"""Laws of folders made from names: one for each tuple of names, below its base, apart in any file system."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.lake.location import table_location
from cdc_lib.model.folder import LONGEST_FOLDER, folder_of
from cdc_lib.model.lake_table import LakeName
from cdc_lib.store.objects.keys import check_key
from tests.harness.lake.locations import overlap

WRITTEN = st.text(alphabet=list("aAbB.@-_/\\#?%$1 \n店Ä{}`0123de"), max_size=6)
NAMES = WRITTEN | st.text(max_size=40) | st.text(alphabet="aA.@-店", min_size=60, max_size=70)
TUPLES = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
LAKE_NAMES = st.builds(LakeName, st.just("lake"), st.lists(NAMES, min_size=1, max_size=2).map(tuple), NAMES)


@given(st.lists(TUPLES, min_size=2, max_size=6, unique=True))
def test_two_tuples_of_names_never_share_a_folder(tuples):
    """Also where large and small letters are the same."""
    folders = [folder_of(*names).casefold() for names in tuples]
    assert len(set(folders)) == len(tuples)


@given(TUPLES)
def test_a_folder_is_one_plain_part_of_a_key(names):
    """ASCII, not hidden, not too long."""
    folder = folder_of(*names)
    assert folder.isascii()
    assert 0 < len(folder) <= LONGEST_FOLDER
    assert folder[0].isalnum() or folder[0] == "@"
    assert not set(folder) & set("/\\#?%*[]{} \n`")
    assert check_key(folder) == folder


@given(st.lists(LAKE_NAMES, min_size=2, max_size=5, unique=True))
def test_no_location_of_a_table_contains_another(names):
    """Nor does one lead out of the warehouse."""
    locations = [str(table_location("jdbc", "s3://b/lake", name)) for name in names]
    assert all(location.startswith("s3://b/lake/") and location.count("/") == 5 for location in locations)
    assert not any(overlap(one, other) for one, other in combinations(locations, 2))
