"""What all routes share: the storage, the studies, the keys, the templates, and how texts are shown without passwords."""

from __future__ import annotations

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
from starlette.responses import HTMLResponse

from .._format import amount, duration, rounded, value_text
from ..storage.address import hide_addresses, parse_server, shown_address
from ..storage.base import Storage, StudyRecord
from . import pages
from .catalog import Catalog
from .keys import Keys, Visitor
from .live import Watch
from .pictures import Pictures

HERE = Path(__file__).parent
SECONDS_TO_KEEP = 10.0  # a part of a page: elapsed times and the like change without a change of the study
MAX_KEPT_PARTS = 200


def no_logs(record: StudyRecord, number: int) -> Sequence[pages.Log]:
    return []


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
        self._parts: OrderedDict[Hashable, tuple[float, object, str]] = OrderedDict()
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

    def part(self, template: str, key: Hashable, stamp: object, make: Callable[[], Mapping[str, Any]]) -> str:
        """A part of a page that is the same for all visitors: kept for a moment while its stamp is the same one."""
        with self._lock:
            at, known, text = self._parts.get(key, (0.0, None, ""))
            if (known is stamp or known == stamp) and time.monotonic() - at < SECONDS_TO_KEEP:
                return text
        text = self.templates.get_template(template).render(**make())
        with self._lock:
            self._parts[key] = time.monotonic(), stamp, text
            while len(self._parts) > MAX_KEPT_PARTS:
                self._parts.popitem(last=False)
        return text

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
