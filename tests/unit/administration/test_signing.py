"""Signing app files again, with the same or a new key."""

from __future__ import annotations

from pathlib import Path

from administration.apps import VersionDraft, add_app_version
from administration.project import Project, create_project
from administration.signing import sign_app_files, with_project_key
from tests.builders import LINUX, an_app
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.administration.clocks import StillClock
from transfer import keys
from wire.signing import parse_public_key_text, verify


async def a_project_with_a_version(folder: Path, store: MemoryStore) -> tuple[Project, bytes]:
    project = create_project(folder / "project", None)
    keys.create_keys(project.keys_dir)
    main = folder / "main.sh"
    main.write_bytes(b"#!/bin/sh\ntouch boinc_finish_called\n")
    await store.applications.add_app(an_app())
    new, sign = VersionDraft("pi", LINUX, 100, main), with_project_key(project)
    await add_app_version(as_postgres(store).applications, project, new, clock=StillClock(), sign=sign)
    return project, main.read_bytes()


async def test_new_key_signs_all_files_and_is_endorsed(tmp_path: Path) -> None:
    store = MemoryStore()
    project, content = await a_project_with_a_version(tmp_path, store)
    old_text = keys.CodeSigner(keys.load_keys(project.keys_dir)).public_key_text()

    assert await sign_app_files(as_postgres(store).applications, project, new_key=True) == 1

    signer = keys.CodeSigner(keys.load_keys(project.keys_dir))
    [file] = await store.applications.app_files()
    vouched = signer.rotation_signature(old_text)
    assert signer.public_key_text() != old_text
    assert verify(parse_public_key_text(signer.public_key_text()), content, file.signature)
    assert not verify(parse_public_key_text(old_text), content, file.signature)
    assert vouched is not None
    assert verify(parse_public_key_text(old_text), signer.public_key_text().strip().encode(), vouched)


async def test_signing_again_with_the_same_key_is_idempotent(tmp_path: Path) -> None:
    store = MemoryStore()
    project, _ = await a_project_with_a_version(tmp_path, store)
    before = await store.applications.app_files()

    await sign_app_files(as_postgres(store).applications, project, new_key=False)

    assert await store.applications.app_files() == before
