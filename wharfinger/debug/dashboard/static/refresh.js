// Replaces the sections of the page that changed. The server sends each of them as HTML, by server-sent events. What a reader
// has unfolded, scrolled, focused or selected stays as it is. Without this script the page works, and is as old as its request.
"use strict";
(() => {
  const connection = document.getElementById("connection");
  const announcement = document.getElementById("announcement");
  const problem = document.getElementById("problem");
  const waiting = new Map();
  let paused = false;

  const button = document.createElement("button");
  button.type = "button";
  button.id = "pause";
  button.textContent = "Pause updates";
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume updates" : "Pause updates";
    connection.textContent = paused ? "paused" : "";
    if (!paused) showWaiting();
  });
  document.getElementById("controls").append(button);

  const isSelectedIn = (element) => {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && element.contains(selection.anchorNode);
  };

  const keep = (old, fresh) => {
    for (const details of old.querySelectorAll("details[open]")) {
      const twin = fresh.querySelector(`#${CSS.escape(details.id)}`);
      if (twin !== null) twin.open = true;
    }
  };

  const keepPlace = (places, fresh) => {
    for (const [id, left, top] of places) {
      const twin = fresh.querySelector(`#${CSS.escape(id)}`);
      if (twin !== null) {
        twin.scrollLeft = left;
        twin.scrollTop = top;
      }
    }
  };

  const focusIn = (old) => {
    const active = document.activeElement;
    if (active === null || !old.contains(active)) return null;
    if (active.id) return `#${CSS.escape(active.id)}`;
    if (active.matches("summary")) return `#${CSS.escape(active.parentElement.id)} > summary`;
    const href = active.getAttribute("href");
    return href === null ? null : `a[href="${CSS.escape(href)}"]`;
  };

  const replace = (id, html) => {
    const old = document.getElementById(id);
    if (old === null) return;
    const template = document.createElement("template");
    template.innerHTML = html;
    const fresh = template.content.firstElementChild;
    if (fresh === null) return;
    const focused = focusIn(old);
    const places = [...old.querySelectorAll(".scroll[id]")].map((each) => [each.id, each.scrollLeft, each.scrollTop]);
    keep(old, fresh);
    old.replaceWith(fresh);
    keepPlace(places, fresh);
    if (focused !== null) fresh.querySelector(focused)?.focus({ preventScroll: true });
  };

  const showWaiting = () => {
    for (const [id, html] of [...waiting]) {
      const old = document.getElementById(id);
      if (paused || (old !== null && isSelectedIn(old))) continue;
      waiting.delete(id);
      replace(id, html);
    }
  };

  const changes = new EventSource(document.body.dataset.changes);
  changes.addEventListener("section", (event) => {
    const { id, html } = JSON.parse(event.data);
    waiting.set(id, html);
    showWaiting();
  });
  changes.addEventListener("announcement", (event) => {
    const { text } = JSON.parse(event.data);
    if (!paused && announcement.textContent !== text) announcement.textContent = text;
  });
  changes.addEventListener("problem", (event) => {
    const { text } = JSON.parse(event.data);
    problem.replaceChildren();
    if (text === "") return;
    const line = document.createElement("p");
    line.textContent = text;
    problem.append(line);
  });
  changes.addEventListener("open", () => {
    if (!paused) connection.textContent = "";
  });
  changes.addEventListener("error", () => {
    connection.textContent =
      changes.readyState === EventSource.CLOSED
        ? "No more updates: reload the page, or start wharfinger dashboard again."
        : "Connection lost; trying again.";
  });
  document.addEventListener("selectionchange", showWaiting);
})();
