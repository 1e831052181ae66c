"""Where a Protobuf message is described: a Python module of protoc, a file of descriptors, or a Confluent registry.

    module:Message                     the class's own descriptor
    shop.Order, com.acme.Shop$Order    by the full name, or by the name of the class in Java, of a file or a registry

A registry has a schema as a serialised file, as Python's client stores it and Confluent's gives it when asked, or as
the text of a .proto, which protoc (grpcio-tools) makes descriptors of.
"""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pyhudi.errors import ConfigError, MissingLibrary
from pyhudi.registry import Registry
from pyhudi.storage import open_storage
from pyhudi.streamer.schemas import fetched_answer
from pyhudi.streamer.settings import PipelineSettings

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

__all__ = ["CLASS_NAME", "configured_message", "is_named", "protobuf_library", "registered_message"]

CLASS_NAME = "hoodie.streamer.schemaprovider.proto.class.name"
_OF_GOOGLE = re.compile(r"google/(\w+/)*\w+\.proto", re.ASCII)
_COMPILED = "schema.proto"
_TIMEOUT_S = 60


def protobuf_library() -> Any:
    """The package `google.protobuf`. Raises MissingLibrary."""
    try:
        import google.protobuf
    except ImportError as error:
        raise MissingLibrary(
            'Protobuf needs its library, which is not installed: pip install "pyhudi[protobuf]".'
        ) from (error)
    return google.protobuf


def configured_message(settings: PipelineSettings) -> Descriptor | None:
    """The message of the module or file that the configuration names; None where only a registry can have it.

    Raises: ConfigError for a message that is in neither.
    """
    protobuf_library()
    options, place = settings.options.protobuf, settings.place
    name = options.class_name
    if name is None:
        raise ConfigError(f"{place}: {CLASS_NAME} is missing: the full name of a message, or module:Message.")
    if ":" in name:
        messages: Registry[Any] = Registry(kind="message", entries={})
        descriptor = getattr(messages.load(name), "DESCRIPTOR", None)
        if descriptor is None or not hasattr(descriptor, "fields"):
            raise ConfigError(f"{place}: {CLASS_NAME}={name}: expected a class of a message that protoc made.")
        return descriptor  # type: ignore[no-any-return]
    if options.descriptor_file is None:
        return None
    return _of_file(options.descriptor_file, name, settings)


def registered_message(url: str, user: str | None, schema_id: int, indexes: Sequence[int]) -> Descriptor:
    """The message of a registry's schema, by its place in the file and in the messages around it.

    Raises: ConfigError where the registry has no such schema or message; StorageError where it is away.
    """
    answer = fetched_answer(f"{url}/schemas/ids/{schema_id}?format=serialized", user)
    name, files = _files_of(answer, url, user)
    messages, names = files[name].message_type, [files[name].package] if files[name].package else []
    for index in indexes:
        if not 0 <= index < len(messages):
            raise ConfigError(f"The schema {schema_id} has no message at {list(indexes)}.")
        names.append(messages[index].name)
        messages = messages[index].nested_type
    return _pool(files).FindMessageTypeByName(".".join(names))  # type: ignore[no-any-return]


def is_named(descriptor: Descriptor, name: str) -> bool:
    """Is it the message of this full name, or of this class in Java?"""
    name = name.replace("$", ".")
    if name == descriptor.full_name:
        return True
    file = descriptor.file
    package = file.package
    inside = descriptor.full_name.removeprefix(f"{package}." if package else "")
    java = _proto_of(file).options.java_package or package
    head = name.removesuffix(f".{inside}") if name.endswith(f".{inside}") else None
    # Between the package and the message there may be the class of the file.
    return head is not None and (head == java or head.rpartition(".")[0] == java)


def _of_file(path: str, name: str, settings: PipelineSettings) -> Descriptor:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    folder, _, bare = path.rpartition("/")
    data = open_storage(folder or ".", settings.store).read(bare, 1 << 24)
    try:
        files = {file.name: file for file in FileDescriptorSet.FromString(data).file}
    except DecodeError as error:
        raise ConfigError(f"{settings.place}: {path} is no file of descriptors: {error}.") from error
    pool = _pool(files)
    messages = [one for file in files for one in _messages(pool.FindFileByName(file).message_types_by_name.values())]
    found = [one for one in messages if is_named(one, name)]
    if len(found) != 1:
        raise ConfigError(
            f"{settings.place}: {CLASS_NAME}={name}: {path} has the messages "
            f"{', '.join(one.full_name for one in messages)[:500]}."
        )
    return found[0]


def _messages(found: Any) -> Iterator[Descriptor]:
    for one in found:
        yield one
        yield from _messages(one.nested_types)


def _pool(files: Mapping[str, FileDescriptorProto]) -> Any:
    """A pool of these files, each after those that it imports; what Google's packages have comes from the library."""
    from google.protobuf import descriptor_pool

    pool, added = descriptor_pool.DescriptorPool(), set()

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        file = files[name] if name in files else _of_library(name)
        for other in file.dependency:
            add(other)
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:  # the library's word for a file that contradicts itself
            raise ConfigError(f"The schema {name} can't be read: {error}.") from error

    for name in files:
        add(name)
    return pool


def _of_library(name: str) -> FileDescriptorProto:
    """A file of Google's packages, as far as they are installed."""
    if _OF_GOOGLE.fullmatch(name) is None:
        raise ConfigError(f"The schema imports {name!r:.100}, and the registry has no reference to it.")
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError as error:
        raise ConfigError(f"The schema imports {name}, which is not installed: {error}.") from error
    return _proto_of(module.DESCRIPTOR)


def _proto_of(file: Any) -> FileDescriptorProto:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    return proto


def _files_of(answer: Mapping[str, Any], url: str, user: str | None) -> tuple[str, dict[str, FileDescriptorProto]]:
    """The name of a schema's file, and all files that it has or refers to."""
    texts: dict[str, str] = {}
    waiting = [("", answer)]
    while waiting:
        name, one = waiting.pop()
        texts[name] = str(one["schema"])
        for other in one.get("references") or ():
            if other["name"] not in texts:
                at = f"{url}/subjects/{quote(other['subject'], safe='')}/versions/{other['version']}?format=serialized"
                waiting.append((other["name"], fetched_answer(at, user)))
    root = texts.pop("")
    first = _serialised(root)
    if first is None:
        return _COMPILED, _compiled({**texts, _COMPILED: root})
    files = {first.name: first}
    for name, text in texts.items():
        file = _serialised(text)
        if file is None:
            raise ConfigError(f"The schema refers to {name}, which the registry has as text, and itself as bytes.")
        file.name = name
        files[name] = file
    return first.name, files


def _serialised(text: str) -> FileDescriptorProto | None:
    """A file from its bytes in base 64; None for another text."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        file = FileDescriptorProto.FromString(b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None
    return file if file.message_type else None


def _compiled(texts: Mapping[str, str]) -> dict[str, FileDescriptorProto]:
    """Files of .proto texts, and those of Google that they import, by protoc."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    if find_spec("grpc_tools") is None:
        raise MissingLibrary(
            "The registry gives a schema as the text of a .proto, which needs grpcio-tools, which is not installed: "
            'pip install "pyhudi[protobuf]".'
        )
    with TemporaryDirectory() as folder:
        for name, text in texts.items():
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ConfigError(f"The schema refers to {name!r:.100}, which is no name of a .proto file.")
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        out = Path(folder, "descriptors")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
        run = subprocess.run(
            [*command, f"--descriptor_set_out={out}", _COMPILED],
            capture_output=True, text=True, timeout=_TIMEOUT_S, cwd=folder, check=False,
        )  # fmt: skip
        if run.returncode:
            raise ConfigError(f"protoc can't read the schema: {run.stderr.strip().replace(f'{folder}/', '')[:500]}")
        return {file.name: file for file in FileDescriptorSet.FromString(out.read_bytes()).file}
