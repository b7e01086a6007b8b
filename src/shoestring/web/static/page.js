// The script of the page: signing in by the key in the address, and live updates. It has no other library, and runs nothing that
// the server sends as text: parts of a page are parsed into nodes, and scripts in parsed nodes do not run.
"use strict";

const TRIED = "shoestring-tried";

// -- signing in: the key of a link is in the fragment of the address, which no browser sends to a server --

async function exchange(key) {
  const answer = await fetch("/login", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ key: key }), credentials: "same-origin",
  });
  if (answer.ok) return "";
  try { return (await answer.json()).error; } catch { return "the server does not answer as expected"; }
}

async function signIn() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  const onLoginPage = document.querySelector("main[data-login]") !== null;
  if (key !== null) {
    history.replaceState(null, "", location.pathname + location.search); // the key stays in no history
    const problem = await exchange(key);
    if (problem === "" || !onLoginPage) { location.reload(); return; }
    document.getElementById("login-problem").textContent = problem;
    return;
  }
  if (!onLoginPage) { sessionStorage.removeItem(TRIED); return; }
  // A link on another website: a strict cookie is not sent with the first request, but with the next one.
  if (sessionStorage.getItem(TRIED) === null) {
    sessionStorage.setItem(TRIED, "yes");
    const session = await fetch("/session?quiet=1", { headers: { Accept: "application/json" }, credentials: "same-origin" });
    if (session.ok) { location.reload(); return; }
  }
  const form = document.getElementById("login");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = await exchange(document.getElementById("token").value);
    if (problem === "") location.reload();
    else document.getElementById("login-problem").textContent = problem;
  });
}

// -- parts of a page --

const updated = new Map(); // when a part was fetched, and how long that took

function wanted(part, now) {
  const known = updated.get(part.id) || { at: -1e9, took: 0 };
  const pause = Math.max(Number(part.dataset.every || 1) * 1000, 20 * known.took); // the server must have time for the study
  return now - known.at >= pause;
}

function inUse(part) {
  const active = document.activeElement;
  return active !== null && part.contains(active) && active.matches("input, select, textarea");
}

async function update(part) {
  const began = performance.now();
  updated.set(part.id, { at: began, took: (updated.get(part.id) || { took: 0 }).took });
  let answer;
  try {
    answer = await fetch(part.dataset.fragment, { headers: { Accept: "text/html", "X-Fragment": "1" }, credentials: "same-origin" });
  } catch { return; } // the server is away: the next message comes when it is back
  if (answer.status === 401) { location.reload(); return; }
  if (!answer.ok) return;
  const text = await answer.text();
  updated.set(part.id, { at: began, took: performance.now() - began });
  if (inUse(part)) return;
  part.dataset.shown = answer.headers.get("X-Version"); // it may be older than the news: then it is fetched once more
  const parsed = new DOMParser().parseFromString(text, "text/html");
  const open = new Set([...part.querySelectorAll("details[open][id]")].map((each) => each.id));
  const active = document.activeElement;
  const focused = active !== null && part.contains(active) ? { id: active.id, href: active.getAttribute("href") } : null;
  part.replaceChildren(...parsed.body.childNodes);
  for (const each of part.querySelectorAll("details[id]")) each.open = open.has(each.id);
  if (focused !== null) {
    const same = [...part.querySelectorAll("a, summary, [tabindex]")].find(
      (each) => (focused.id !== "" && each.id === focused.id) || (focused.href !== null && each.getAttribute("href") === focused.href));
    if (same !== undefined) same.focus({ preventScroll: true });
  }
  part.dispatchEvent(new CustomEvent("shoestring-updated", { bubbles: true }));
}

// -- live updates --

let source = null;
const inView = new Set(); // ids of the parts that can be seen: the others wait

function watchView() {
  const parts = document.querySelectorAll("[data-fragment]");
  if (!("IntersectionObserver" in window)) { parts.forEach((part) => inView.add(part.id)); return; }
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) inView.add(entry.target.id); else inView.delete(entry.target.id);
  }, { rootMargin: "100px" });
  parts.forEach((part) => seen.observe(part));
}

function updateParts() {
  if (document.hidden) return;
  const now = performance.now();
  for (const part of document.querySelectorAll("[data-fragment]")) {
    if (part.hasAttribute("data-lazy") || !inView.has(part.id)) continue;
    if (part.dataset.shown !== part.dataset.version && wanted(part, now) && !inUse(part)) update(part);
  }
}

function listen(main) {
  if (source !== null || document.hidden) return;
  source = new EventSource(main.dataset.events);
  source.addEventListener("message", (event) => {
    const news = JSON.parse(event.data);
    const known = main.dataset.version;
    main.dataset.version = news.version;
    main.dataset.live = "yes";
    if (known === news.version) return;
    announce(main, news);
    if (main.dataset.reload === "main") { refreshMain(main); return; }
    for (const part of document.querySelectorAll("[data-fragment]")) part.dataset.version = news.version;
    updateParts();
  });
  source.addEventListener("error", () => {
    main.dataset.live = "no";
    if (source !== null && source.readyState === EventSource.CLOSED) { source = null; setTimeout(() => listen(main), 5000); }
  });
  source.addEventListener("gone", () => { source.close(); location.reload(); });
}

function announce(main, news) { // to those who do not see the page: when something begins or ends, not each number
  const place = document.getElementById("announce");
  if (place !== null && main.dataset.state !== news.state) { main.dataset.state = news.state; place.textContent = news.line; }
}

async function refreshMain(main) {
  if (inUse(main) || main.querySelector("input:checked, details[open]") !== null) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (!answer.ok) return;
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = parsed.querySelector("main");
  if (found !== null) main.replaceChildren(...found.childNodes);
}

function showElapsed() {
  for (const cell of document.querySelectorAll("[data-since]")) {
    const seconds = Math.max(0, Math.floor(Date.now() / 1000 - Number(cell.dataset.since)));
    const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), two = (each) => String(each).padStart(2, "0");
    cell.textContent = hours ? `${hours} h ${two(minutes % 60)} m` : minutes ? `${minutes} m ${two(seconds % 60)} s` : `${seconds} s`;
  }
}

function loadLater() {
  let last = Promise.resolve(); // one after the other: the server may have to fit a model first
  const load = (part) => {
    part.removeAttribute("data-lazy");
    last = last.then(() => update(part)).catch(() => {}).then(() => part.classList.remove("later"));
  };
  const later = document.querySelectorAll("[data-lazy]");
  if (!("IntersectionObserver" in window)) { later.forEach(load); return; }
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); load(entry.target); }
  }, { rootMargin: "300px" });
  later.forEach((part) => seen.observe(part));
}

function start() {
  signIn();
  const main = document.querySelector("main[data-events]");
  if (main === null) return;
  for (const part of document.querySelectorAll("[data-fragment]")) part.dataset.shown = part.dataset.version = main.dataset.version;
  listen(main);
  watchView();
  loadLater();
  setInterval(() => { if (!document.hidden) { showElapsed(); updateParts(); } }, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && source !== null) { source.close(); source = null; } // the page is hidden: nothing is asked
    else listen(main);
  });
  window.addEventListener("pagehide", () => { if (source !== null) source.close(); });
}

start();
