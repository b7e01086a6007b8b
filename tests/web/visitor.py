"""A browser or a program that visits the page, without a network: requests go to the application itself."""

import asyncio
import re

import httpx

HOST = "127.0.0.1:8321"
TOKEN = "a-token-for-the-tests"


class Caller:
    """Sends requests to an application; keeps its cookies."""

    def __init__(self, app, *, html=True, **headers):
        self.app, self.cookies = app, httpx.Cookies()
        self.headers = {"Accept": "text/html" if html else "application/json", **headers}

    def send(self, method, path, **options):
        async def once():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}", cookies=self.cookies) as client:
                headers = {**self.headers, **options.pop("headers", {})}
                answer = await client.request(method, path, headers=headers, **options)
                self.cookies = client.cookies
                return answer

        return asyncio.run(once())

    def get(self, path, **options):
        return self.send("GET", path, **options)

    def post(self, path, **options):
        return self.send("POST", path, **options)

    def csrf(self, page="/"):
        """The CSRF token in the forms of a page."""
        return re.search(r'name="csrf" value="([0-9a-f]+)"', self.get(page).text)[1]

    def act(self, study, action, **fields):
        """Send the form of an action, as a browser does."""
        where = f"/studies/{study}/actions/{action}"
        return self.post(where, data={"csrf": self.csrf(), **fields}, headers={"Origin": f"http://{HOST}"})


def signed_in(site, app, key=None):
    """A browser that has opened a link."""
    caller = Caller(app)
    assert caller.post("/login", json={"key": key or site.keys.new_link_key()}).status_code == 204
    return caller


def program(app, token=TOKEN):
    """A program with the token."""
    return Caller(app, html=False, Authorization=f"Bearer {token}")
