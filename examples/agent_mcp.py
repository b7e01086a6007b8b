"""An agent's side of `shoestring mcp`: make a study, ask, evaluate, tell, until the study says that it is time to stop.

A real agent starts `shoestring mcp --storage tune.db` and speaks with it through its pipes. Here both sides are in one process.
Needs: pip install "shoestring[agents]"
"""

import anyio
from mcp import Client

import shoestring as st
from shoestring.integrations.mcp_server import make_server

SPACE = {
    "temperature": {"kind": "float", "low": 20, "high": 95},
    "tea": {"kind": "choice", "options": ["black", "green"]},
}


def bitterness(config):
    """Stands for what the agent does with the settings: it trains a model, or asks somebody to brew tea."""
    return abs(config["temperature"] - (92 if config["tea"] == "black" else 75)) / 25


async def main():
    async with Client(make_server(st.open_storage("memory"))) as client:

        async def call(tool, **arguments):
            answer = await client.call_tool(tool, arguments)
            if answer.is_error:
                raise SystemExit(answer.content[0].text)  # what is wrong, where, and how to fix the call
            return answer.structured_content

        await call("create_study", name="tea", space=SPACE, budget="60 USD", unit="USD")
        for _ in range(10):
            trial = await call("ask", study="tea")
            value = bitterness(trial["config"])
            await call("tell", study="tea", number=trial["number"], value=value, cost=3.0)
        expected = await call("expect_next", study="tea")
        print("next:", expected["next"]["config"], "expected gain:", expected["next"]["expected_gain"])
        found = await call("summary", study="tea")
        print("spent:", found["facts"]["spent"])
        print("best:", found["best"]["value"], found["best"]["config"])


if __name__ == "__main__":
    anyio.run(main)
