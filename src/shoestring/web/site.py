"""What all routes share: the storage, the studies, the keys, the templates, and how texts are shown without passwords."""

from __future__ import annotations

import contextlib
import gzip
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from .._format import amount, duration, rounded, value_text
from ..errors import ShoestringError
from ..storage.address import hide_addresses, parse_server, shown_address
from ..storage.base import Storage, StudyRecord
from . import pages
from .catalog import Catalog
from .keys import Keys, Visitor
from .live import Watch
from .pictures import Pictures, first_views

HERE = Path(__file__).parent
SECONDS_TO_KEEP = 10.0  # a part of a page: elapsed times and the like change without a change of the study
MAX_KEPT_PARTS = 200
GZIP_LEVEL = 5
MAX_SHARE = 0.01  # of its time that the server spends on one part of a study that changes all the time ...
MAX_SECONDS_OLD = 30.0  # ... and no part is older than this


def no_logs(record: StudyRecord, number: int) -> Sequence[pages.Log]:
    return []


class Part:
    """A part of a page as it was written last: the text, its version, when that was, and how long it took."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # pages that ask at the same moment wait for one of them
        self.text, self.packed, self.version, self.at, self.took = b"", b"", "", -math.inf, 0.0

    def is_good(self, version: str, every: float) -> bool:
        """Whether the text may be sent: it is new, or so young that writing it again would cost the study too much."""
        age = time.monotonic() - self.at
        pause = max(every, min(self.took / MAX_SHARE, MAX_SECONDS_OLD))
        return age < pause or (self.version == version and age < SECONDS_TO_KEEP)


@dataclass
class Site:
    """All that the routes share.

    address   of the storage as it was given, with its password: only to find that password in texts, never to be shown
    logs      reads the ends of a trial's log files on this machine
    command   a shoestring command to type, from its words
    """

    storage: Storage
    keys: Keys
    address: str = ""
    version: str = ""
    logs: pages.LogReader = no_logs
    command: Callable[..., str] = lambda *words: " ".join(("shoestring", *words))

    def __post_init__(self) -> None:
        self.catalog = Catalog(self.storage)
        self.drawn = Catalog(self.storage)  # for pictures: a page must not wait for the lock of a study while a model is fitted
        self.watch = Watch(self.catalog)
        self.pictures = Pictures(self.hide_in)
        self._lock = threading.Lock()
        self._parts: OrderedDict[Hashable, Part] = OrderedDict()
        server = parse_server(self.address) if "://" in self.address else None
        self._secrets = () if server is None else tuple(server.secrets)
        self.templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, finalize=self.shown,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self.templates.globals |= {"study_url": study_url, "storage_text": shown_address(self.address) or self.storage.url}
        self.templates.filters |= {
            "rounded": rounded, "duration": duration, "value_text": value_text, "amount": amount, "hidden": self.hide,
        }  # fmt: skip

    def warm_up(self) -> None:
        """Read the newest studies and draw their first pictures before the first visitor asks for them."""
        for name in self.templates.list_templates():
            self.templates.get_template(name)
        with contextlib.suppress(ShoestringError):
            for study in self.catalog.newest():
                for view in first_views():
                    self.pictures.picture(study, view)

    def shown(self, value: Any) -> Any:
        """What is written into a page: a text without the passwords of addresses. Markup is our own."""
        return self.hide(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    def hide(self, text: str) -> str:
        """A text without the passwords of addresses in it."""
        if "://" in text or any(secret in text for secret in self._secrets):
            text = hide_addresses(text, [self.address] if self._secrets else [])
        return text.encode("utf-8", "replace").decode()  # half a character cannot be sent

    def hide_in(self, document: Any) -> Any:
        """The same for a JSON document."""
        if isinstance(document, str):
            return self.hide(document)
        if isinstance(document, Mapping):
            return {self.hide(str(name)): self.hide_in(value) for name, value in document.items()}
        return [self.hide_in(each) for each in document] if isinstance(document, list | tuple) else document

    def page(self, template: str, visitor: Visitor | None, code: int = 200, **values: Any) -> HTMLResponse:
        csrf = "" if visitor is None or visitor.csrf is None else visitor.csrf
        may_write = visitor is not None and visitor.may_write
        text = self.templates.get_template(template).render(
            csrf=csrf, may_write=may_write, signed_in=visitor is not None, **values
        )
        return HTMLResponse(text, code)

    def part(
        self, template: str, key: Hashable, version: str, make: Callable[[], Mapping[str, Any]], *, every: float, packed: bool
    ) -> Response:
        """A part of a page that is the same for all visitors, written and packed once for all of them.

        every    seconds for which it is sent again although the study has changed. The header X-Version says which version it is,
                 so that a page knows whether to ask once more
        packed   whether the visitor takes gzip
        """
        with self._lock:
            part = self._parts.setdefault(key, Part())
            self._parts.move_to_end(key)
            while len(self._parts) > MAX_KEPT_PARTS:
                self._parts.popitem(last=False)
        with part.lock:
            if not part.is_good(version, every):
                began = time.thread_time()
                part.text, part.version = self.templates.get_template(template).render(**make()).encode(), version
                part.packed = gzip.compress(part.text, GZIP_LEVEL)
                part.at, part.took = time.monotonic(), (time.thread_time() - began) if every else 0.0
            text, headers = part.text, {"X-Version": part.version, "Vary": "Accept-Encoding"}
            if packed:
                text, headers = part.packed, headers | {"Content-Encoding": "gzip"}
        return HTMLResponse(text, headers=headers)

    def refusal(self, status: int, what: str, fix: str) -> str:
        return self.templates.get_template("refused.html").render(
            status=status, what=what, fix=fix, csrf="", may_write=False, signed_in=False
        )

    def close(self) -> None:
        """End the live updates, and close the studies."""
        self.watch.closing = True
        self.catalog.close()
        self.drawn.close()


def study_url(name: str, *parts: Any) -> str:
    """The address of a study's page, or of a part of it."""
    return "/".join(["/studies", quote(name, safe=""), *map(str, parts)])
