"""One contract suite for both stores of complete files: the folder, and a bucket of a real server."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest

from domain.errors import AlreadyExistsError, InvalidInputError, UnavailableError
from domain.units import Instant
from tests.s3 import S3Server
from transfer.bucket import PART_BYTES, PIECE_BYTES, BucketStore
from transfer.file_store import Area, FileKey, FileStore, FolderStore
from transfer.files import Content

NAMES = ("pi_3_41_77_r0", "größe 1+1", "a~b#c[1]", "x" * 240)


def content_of(data: bytes) -> Content:
    return Content(len(data), hashlib.md5(data).hexdigest())


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "files")
    return BucketStore(request.getfixturevalue("bucket_url"))


def key_of(data: bytes, name: str = NAMES[0], area: Area = Area.UPLOAD) -> FileKey:
    return FileKey(area, name, content_of(data).md5 if area is Area.UPLOAD else "")


async def put(store: FileStore, data: bytes, name: str = NAMES[0], area: Area = Area.UPLOAD) -> FileKey:
    key = key_of(data, name, area)
    await store.put(io.BytesIO(data), key, content_of(data))
    return key


async def bytes_of(store: FileStore, key: FileKey, start: int = 0, stop: int = 10**9) -> bytes:
    [stat] = await store.stats([key])
    assert stat is not None
    return b"".join([piece async for piece in store.read(key, start, min(stop, stat.nbytes))])


@pytest.mark.parametrize("area", list(Area))
@pytest.mark.parametrize("name", NAMES)
async def test_a_file_is_read_as_it_was_put(store: FileStore, name: str, area: Area) -> None:
    key = await put(store, b"3.14", name, area)

    assert await bytes_of(store, key) == b"3.14"
    assert await store.content(key) == content_of(b"3.14")


async def test_sizes_and_ages_are_of_each_file(store: FileStore) -> None:
    first, second = await put(store, b"1", "a_1_r0"), await put(store, b"22", "b_2_r0")
    none = key_of(b"333", "c_3_r0")

    stats = await store.stats([second, none, first])

    assert [stat and stat.nbytes for stat in stats] == [2, None, 1]
    assert all(stat is None or stat.modified_at > Instant(1_700_000_000) for stat in stats)


async def test_a_missing_file_is_none_or_not_found(store: FileStore) -> None:
    key = key_of(b"none")

    assert (await store.stats([key]), await store.content(key)) == ([None], None)
    with pytest.raises(FileNotFoundError):
        [piece async for piece in store.read(key, 0, 4)]


@pytest.mark.parametrize("area", list(Area))
async def test_putting_the_same_file_again_changes_nothing(store: FileStore, area: Area) -> None:
    first = await put(store, b"same", area=area)

    assert await put(store, b"same", area=area) == first
    assert await bytes_of(store, first) == b"same"


async def test_an_empty_file_is_a_file(store: FileStore) -> None:
    key = await put(store, b"")

    assert (await store.content(key), await bytes_of(store, key)) == (content_of(b""), b"")


async def test_a_part_is_read_from_anywhere(store: FileStore) -> None:
    data = bytes(range(256)) * (PIECE_BYTES // 256) + b"end"
    key = await put(store, data)

    assert await bytes_of(store, key, PIECE_BYTES - 2) == data[-5:]
    assert await bytes_of(store, key, 5, 9) == data[5:9]
    assert await bytes_of(store, key) == data


async def test_a_file_of_many_parts_arrives_whole(store: FileStore) -> None:
    data = hashlib.sha256(b"seed").digest() * (PART_BYTES // 32 * 3) + b"end"
    key = await put(store, data)

    assert hashlib.md5(await bytes_of(store, key)).hexdigest() == key.md5


async def test_deleted_files_are_gone_and_missing_ones_skipped(store: FileStore) -> None:
    kept, gone = await put(store, b"kept", "a_1_r0"), await put(store, b"gone", "b_2_r0")

    await store.delete([gone, key_of(b"none", "c_3_r0")])
    await store.delete([])

    assert [stat is None for stat in await store.stats([kept, gone])] == [False, True]


async def test_a_listing_has_the_files_of_its_area(store: FileStore) -> None:
    output = await put(store, b"out", "größe 1_1_r0")
    await put(store, b"in", "input", Area.DOWNLOAD)

    [found] = [one async for page in store.listed(Area.UPLOAD) for one in page]
    [also] = [one async for page in store.listed(Area.UPLOAD, found.place.split("/")[1]) for one in page]

    assert found.key is not None
    assert (found.key.area, found.key.name, found.stat.nbytes) == (Area.UPLOAD, output.name, 3)
    assert (found.key.md5 or output.md5, also) == (output.md5, found)
    assert [one async for page in store.listed(Area.UPLOAD, "zz") for one in page] == []


async def test_a_long_listing_comes_in_pages(bucket_url: str, tmp_path: Path) -> None:
    bucket = BucketStore(bucket_url)
    for number in range(1_005):
        await put(bucket, b"", f"a_{number}_r0")

    pages = [len(page) async for page in bucket.listed(Area.UPLOAD)]

    assert (sum(pages), max(pages)) == (1_005, 1_000)


async def test_a_bucket_keeps_each_content_of_an_output(bucket_url: str) -> None:
    bucket = BucketStore(bucket_url)
    first, second = await put(bucket, b"first"), await put(bucket, b"second")

    assert (await bytes_of(bucket, first), await bytes_of(bucket, second)) == (b"first", b"second")


async def test_a_folder_has_paths_and_no_links(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path)
    key = await put(folder, b"3.14")

    assert folder.path(key).read_bytes() == b"3.14"
    assert await folder.link(key, 60.0) is None
    assert not folder.path(key).stat().st_mode & 0o222  # the leftover cleaner takes it for recorded


async def test_a_folder_keeps_the_first_file_for_downloads(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path)
    key = await put(folder, b"first", "app", Area.DOWNLOAD)

    with pytest.raises(AlreadyExistsError):
        await put(folder, b"other", "app", Area.DOWNLOAD)

    assert await bytes_of(folder, key) == b"first"


async def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        FolderStore(tmp_path).path(FileKey(Area.UPLOAD, "../secret"))


async def test_a_file_of_another_program_has_an_md5_too(bucket_url: str, s3: S3Server) -> None:
    bucket = BucketStore(bucket_url)
    key = FileKey(Area.DOWNLOAD, "app")
    await bucket.put(io.BytesIO(b"by hand"), key, Content(7, ""))  # no metadata

    assert await bucket.content(key) == content_of(b"by hand")


async def test_a_bucket_that_does_not_exist_is_unavailable(s3: S3Server) -> None:
    with pytest.raises(UnavailableError):
        await BucketStore(f"s3://no-such-bucket?endpoint={s3.endpoint}").stats([key_of(b"x")])


async def test_missing_credentials_are_named(bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")

    with pytest.raises(UnavailableError, match="AWS_ACCESS_KEY_ID"):
        await BucketStore(bucket_url).stats([key_of(b"x")])


async def test_wrong_credentials_are_unavailable(bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")

    with pytest.raises(UnavailableError):
        await BucketStore(bucket_url).content(key_of(b"x"))


async def test_the_environment_may_name_the_endpoint(
    s3: S3Server, bucket_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await put(BucketStore(bucket_url), b"3.14")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)

    assert await BucketStore(bucket_url.partition("?")[0]).content(key) == content_of(b"3.14")
