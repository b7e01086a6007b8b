"""The routes of the page. ``make_app`` puts them behind the guard, which refuses all without a key (see ``security``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ..errors import ShoestringError, StorageUnavailable
from ..report.svg import CSS as CHART_CSS
from ..report.views import TITLES, VIEWS
from ..study import Study
from . import actions, api, pages
from .catalog import Catalog, NoStudy
from .keys import Visitor
from .live import MAX_LISTENERS
from .openapi import description
from .pictures import first_views, is_quiet, shown_views
from .security import Guard, Refused, signed_in, wants_html
from .site import GZIP_LEVEL, HERE, Site, study_url
from .trial_rows import STATES, Query, cell, make_table

STATIC = {"page.css": "text/css", "page.js": "text/javascript", "chart.css": "text/css", "icon.svg": "image/svg+xml"}
MAX_KEY_CHARACTERS = 500
SECONDS_BETWEEN = {"live": 1.9, "table": 4.9, "picture": 9.9}  # two writings of a part; pages ask a little less often


def make_app(site: Site, *, hosts: Sequence[str] = (), any_ip: bool = False) -> Guard:
    """The application behind its guard."""
    routes = Routes(site)
    smaller = Middleware(GZipMiddleware, minimum_size=1000, compresslevel=GZIP_LEVEL)  # it leaves live updates alone
    app = Starlette(routes=list(routes.table()), exception_handlers=routes.errors(), middleware=[smaller])
    return Guard(app, site.keys, hosts=hosts, any_ip=any_ip, refusal=site.refusal, hide=site.hide)


class Routes:
    """One method for each route. Methods that are not coroutines run in threads, so they may read the storage."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def table(self) -> Iterator[Route]:
        """All routes. A study's name may hold a slash, so the longer addresses come first."""
        study, of_api = "/studies/{name:path}", "/api/studies/{name:path}"
        yield Route("/", self.studies)
        yield Route("/events", self.events)
        yield Route("/compare", self.compare)
        yield Route("/login", self.login, methods=["POST"])
        yield Route("/logout", self.logout, methods=["POST"])
        yield Route("/session", self.session)
        yield Route("/static/{file}", self.static)
        yield Route(f"{study}/trials/{{number:int}}", self.trial)
        yield Route(f"{study}/events", self.events)
        yield Route(f"{study}/parts/{{part}}", self.part)
        yield Route(f"{study}/pictures/{{view}}", self.picture)
        yield Route(f"{study}/actions/{{action}}", self.action, methods=["POST"])
        yield Route(study, self.study)
        yield Route("/openapi.json", self.openapi)
        yield Route("/api/studies", self.api_studies)
        yield Route(f"{of_api}/trials", self.api_trials)
        yield Route(f"{of_api}/views/{{view}}", self.api_view)
        yield Route(f"{of_api}/ask", self.api_ask, methods=["POST"])
        yield Route(f"{of_api}/renew", self.api_renew, methods=["POST"])
        yield Route(f"{of_api}/report", self.api_report, methods=["POST"])
        yield Route(f"{of_api}/tell", self.api_tell, methods=["POST"])
        yield Route(of_api, self.api_study)

    def errors(self) -> dict[Any, Callable[[Request, Exception], Response]]:
        return {
            HTTPException: self.http_error, NoStudy: self.no_study, StorageUnavailable: self.unavailable,
            ShoestringError: self.failed, Exception: self.defect,
        }  # fmt: skip

    # -- keys

    async def login(self, request: Request) -> Response:
        """Exchange a key for a cookie."""
        try:
            key = json.loads(await request.body()).get("key", "")
        except (ValueError, AttributeError):
            key = ""
        role = self.site.keys.exchange(key) if isinstance(key, str) and len(key) <= MAX_KEY_CHARACTERS else None
        if role is None:
            fix = "start shoestring serve again for a new link, or sign in with its token"
            return JSONResponse({"error": "this link was used already, or the key is wrong", "fix": fix}, 401)
        cookie = self.site.keys.new_cookie(role)
        return signed_in(Response(status_code=204), self.site.keys, cookie, secure=request.url.scheme == "https")

    def logout(self, request: Request) -> Response:
        response = RedirectResponse("/", 303)
        response.delete_cookie(self.site.keys.cookie_name, path="/", httponly=True, samesite="strict")
        return response

    def session(self, request: Request) -> Response:
        """Whether the visitor is signed in: without a key, the guard answers."""
        return JSONResponse({"role": visitor_of(request).role})

    def static(self, request: Request) -> Response:
        """One of the few files of the page. No path is made from the address."""
        file = request.path_params["file"]
        if file not in STATIC:
            raise HTTPException(404)
        text = CHART_CSS if file == "chart.css" else (HERE / "static" / file).read_text(encoding="utf-8")
        return Response(text, media_type=STATIC[file], headers={"Cache-Control": "max-age=300"})

    # -- pages

    def studies(self, request: Request) -> Response:
        found = pages.studies_page(self.site.catalog)
        read_only = f"{request.url.scheme}://{request.headers['host']}/#key={self.site.keys.read_only_key}"
        link = read_only if visitor_of(request).may_write else None
        return self.site.page("studies.html", visitor_of(request), read_only_link=link, **found)

    def study(self, request: Request) -> Response:
        return self.study_page(request, request.path_params["name"])

    def study_page(self, request: Request, name: str, status: int = 200, problem: str = "", done: str = "") -> Response:
        site = self.site
        record, study = site.catalog.record(name), site.catalog.study(name)
        query = Query.read(request.query_params)
        first = [site.pictures.picture(study, each) for each in first_views()]
        resume = site.command("resume", record.name)
        return site.page(
            "study.html", visitor_of(request), status, problem=problem, done=done or done_text(request),
            facts=pages.study_facts(record, study, resume), live=pages.live_part(record, study, site.storage),
            first_pictures=first, later_views=[(each, TITLES[each]) for each in shown_views() if each not in first_views()],
            **self.table_values(study, record.name, query),
        )  # fmt: skip

    def live_values(self, name: str) -> dict[str, Any]:
        """What the template of the live line needs."""
        record, study = self.site.catalog.record(name), self.site.catalog.study(name)
        return {"live": pages.live_part(record, study, self.site.storage), "name": record.name}

    def table_values(self, study: Study | None, name: str, query: Query) -> dict[str, Any]:
        """What the template of the trial table needs."""
        study = study or self.site.catalog.study(name)

        def link(**changes: Any) -> str:
            parameters = urlencode(query.parameters(**changes))
            return f"{study_url(name)}{'?' + parameters if parameters else ''}#trials"

        found = make_table(study.log, query)
        fragment = f"{study_url(name, 'parts', 'table')}?{urlencode(query.parameters())}"
        return {
            "table": found, "query": query, "states": STATES, "cell": cell, "table_link": link, "table_fragment": fragment,
            "name": name, "unit": study.unit,
        }  # fmt: skip

    def part(self, request: Request) -> Response:
        """A part of a study's page, for the script."""
        name, part = request.path_params["name"], request.path_params["part"]
        query = Query.read(request.query_params)
        if part == "live":
            make = partial(self.live_values, name)
        elif part == "table":
            make = partial(self.table_values, None, name, query)
        else:
            raise HTTPException(404)
        return self.written(request, f"_{part}.html", (name, part, query), name, make, SECONDS_BETWEEN[part])

    def written(
        self, request: Request, template: str, key: Hashable, name: str, make: Callable[[], dict[str, Any]], every: float
    ) -> Response:
        """A part of a study's page. The script gets what was written for another page a moment ago; others get it new."""
        is_script = bool(request.headers.get("x-fragment"))
        version = self.site.watch.look(name)["version"] if is_script else pages.version_of(self.site.catalog.record(name))
        packed = "gzip" in request.headers.get("accept-encoding", "")
        return self.site.part(template, key, version, make, every=every if is_script else 0.0, packed=packed)

    def picture(self, request: Request) -> Response:
        """One picture of a study, for the script and as a page of its own."""
        name, wanted, site = request.path_params["name"], request.path_params["view"], self.site
        if wanted not in VIEWS:
            raise HTTPException(404)

        def make() -> dict[str, Any]:
            study = site.catalog.study(name)
            if is_quiet(study):  # a model may be fitted, for which no page must wait
                study = site.drawn.study(name)
            return {"picture": site.pictures.picture(study, wanted), "name": study.name}

        if request.headers.get("x-fragment"):
            return self.written(request, "_picture.html", (name, wanted), name, make, SECONDS_BETWEEN["picture"])
        return site.page("picture.html", visitor_of(request), **make())

    def trial(self, request: Request) -> Response:
        return self.trial_page(request, request.path_params["name"], request.path_params["number"])

    def trial_page(
        self, request: Request, name: str, number: int, status: int = 200, problem: str = "", done: str = ""
    ) -> Response:
        site = self.site
        record, study = site.catalog.record(name), site.catalog.study(name)
        if number >= len(study.log):
            raise HTTPException(404)
        trial = study.log[number]
        found = pages.trial_page(record, study, trial, site.logs(record, number))
        return site.page(
            "trial.html",
            visitor_of(request),
            status,
            trial=found,
            name=record.name,
            problem=problem,
            done=done or done_text(request),
        )

    def compare(self, request: Request) -> Response:
        chosen = request.query_params.getlist("study")
        grouped = request.query_params.get("group") == "on"
        found = pages.compare_page(self.site.catalog, self.site.pictures, chosen, grouped)
        return self.site.page("compare.html", visitor_of(request), **found)

    async def events(self, request: Request) -> StreamingResponse:
        name = request.path_params.get("name")
        if self.site.watch.listeners >= MAX_LISTENERS:
            raise HTTPException(503)
        if name is not None:
            await run_in_threadpool(self.site.catalog.record, name)
        return self.site.watch.stream(name)

    async def action(self, request: Request) -> Response:
        """Do what a form asks for, then show the page again."""
        name, action = request.path_params["name"], request.path_params["action"]
        if action not in actions.ACTIONS:
            raise HTTPException(404)
        form = dict(parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True))
        from_trial = form.get("back", "")
        number = int(from_trial) if from_trial.isdecimal() and len(from_trial) < 10 else None
        try:
            await run_in_threadpool(actions.act, self.site.catalog, name, action, form)
        except actions.EXPECTED_ERRORS as error:
            if number is not None:
                return await run_in_threadpool(self.trial_page, request, name, number, 422, str(error))
            return await run_in_threadpool(self.study_page, request, name, 422, str(error))
        where = study_url(name) if number is None else study_url(name, "trials", number)
        return RedirectResponse(f"{where}?done={action}", 303)

    # -- ask and tell

    def openapi(self, request: Request) -> Response:
        return JSONResponse(description(self.site.version))

    def api_studies(self, request: Request) -> Response:
        return self.answer(lambda: api.studies(self.site.catalog))

    def api_study(self, request: Request) -> Response:
        return self.answer(lambda: api.one_study(self.site.catalog, request.path_params["name"]))

    def api_trials(self, request: Request) -> Response:
        given = request.query_params
        first, count = given.get("from", "0"), given.get("count", str(api.MAX_TRIALS_IN_ANSWER))
        return self.answer(lambda: api.trials(self.site.catalog, request.path_params["name"], first, count))

    def api_view(self, request: Request) -> Response:
        name, wanted = request.path_params["name"], request.path_params["view"]
        return self.answer(lambda: api.one_view(self.site.drawn, name, wanted))

    async def api_ask(self, request: Request) -> Response:
        return await self.api_post(request, api.ask)

    async def api_renew(self, request: Request) -> Response:
        return await self.api_post(request, api.renew)

    async def api_report(self, request: Request) -> Response:
        return await self.api_post(request, api.report)

    async def api_tell(self, request: Request) -> Response:
        return await self.api_post(request, api.tell)

    async def api_post(self, request: Request, call: Callable[[Catalog, str, Mapping[str, Any]], dict[str, Any]]) -> Response:
        body, name = await request.body(), request.path_params["name"]
        return await run_in_threadpool(self.answer, lambda: call(self.site.catalog, name, api.read_body(body)))

    def answer(self, call: Callable[[], dict[str, Any]]) -> Response:
        status, document = api.answered(call)
        return JSONResponse(self.site.hide_in(document), status, {"Retry-After": "5"} if status == 503 else None)

    # -- errors

    def http_error(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        known = {
            404: ("there is no such page", "begin at the list of studies"),
            405: ("this address takes no such request", "see /openapi.json"),
        }
        what, fix = known.get(status, ("this cannot be answered now", "try again later"))
        return self.refuse(request, Refused(status, what, fix))

    def no_study(self, request: Request, error: Exception) -> Response:
        return self.refuse(request, Refused(404, f"there is no study {str(error)[:200]!r}", "begin at the list of studies"))

    def unavailable(self, request: Request, error: Exception) -> Response:
        return self.refuse(request, Refused(503, str(error), "load the page again in some seconds"))

    def failed(self, request: Request, error: Exception) -> Response:
        return self.refuse(request, Refused(500, str(error), "see the message; shoestring doctor checks a storage"))

    def defect(self, request: Request, error: Exception) -> Response:
        """Of an unexpected exception, the page shows nothing: the guard writes it to the log."""
        return self.refuse(
            request, Refused(500, "this page has failed by a defect of the program", "the log of the server has the reason")
        )

    def refuse(self, request: Request, refused: Refused) -> Response:
        what = self.site.hide(refused.what)
        if wants_html(request.scope):
            return self.site.page(
                "refused.html", visitor_of(request), refused.status, status=refused.status, what=what, fix=refused.fix
            )
        return JSONResponse({"error": what, "fix": refused.fix}, refused.status)


def visitor_of(request: Request) -> Visitor:
    """Who has sent the request: the guard has refused all others."""
    found = request.scope["state"]["visitor"]
    assert isinstance(found, Visitor)
    return found


DONE = {
    "stop": "All workers stop after the trials that they run now.",
    "resume": "The stop is withdrawn. Asks over HTTP are answered again. A program is started by the command on this page.",
    "enqueue": "The settings are enqueued. They are asked next.",
    "retry": "The settings of the trial are enqueued once more.",
    "note": "The note is kept.",
    "extend": "The budget is larger from now on. A process that runs keeps the one that it began with.",
}


def done_text(request: Request) -> str:
    """What the action before this page has done. The address names the action alone, so no link writes a text into a page."""
    return DONE.get(request.query_params.get("done", ""), "")
