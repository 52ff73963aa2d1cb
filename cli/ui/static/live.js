// Asks for the live part of the view every two seconds, shows it when it has changed, and copies commands.
"use strict";
(() => {
  const live = document.getElementById("live");
  const freshness = document.getElementById("freshness");
  const ended = document.getElementById("ended");
  const said = document.getElementById("said");
  let waiting = null; // the newest part, while text is selected
  let asking = null; // what aborts the present request or the pause before the next

  document.documentElement.classList.add("js");

  // In narrow windows, each row is a card: its cells are named by the columns.
  const nameCells = () => {
    for (const table of live.querySelectorAll("table")) {
      const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
      for (const row of table.tBodies[0].rows) {
        [...row.cells].forEach((cell, i) => {
          cell.dataset.name = names[i];
          cell.classList.toggle("none", cell.textContent.trim() === "-");
        });
      }
    }
  };
  nameCells();

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
      said.textContent = "The command is copied.";
    } catch {
      said.textContent = "The browser did not allow copying.";
    }
    button.firstChild.data = said.textContent.includes("is copied") ? "Copied" : "Not copied";
    setTimeout(() => { button.firstChild.data = "Copy"; said.textContent = ""; }, 2000);
  });

  // The element with the focus, found again in the new part.
  const place = (element) => {
    if (!element || !live.contains(element)) return null;
    const same = element.id ? "#" + CSS.escape(element.id) : element.getAttribute("href") ? `[href="${CSS.escape(element.getAttribute("href"))}"]` : element.localName;
    return { same, index: [...live.querySelectorAll(same)].indexOf(element) };
  };

  const selecting = () => {
    const s = getSelection();
    return s && !s.isCollapsed && live.contains(s.anchorNode);
  };

  const show = (part) => {
    if (part.version === live.dataset.version) { waiting = null; return; }
    if (selecting()) { waiting = part; return; }
    waiting = null;
    const at = place(document.activeElement);
    const scrolled = [...live.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
    live.innerHTML = part.html;
    live.dataset.version = part.version;
    nameCells();
    live.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
    if (at) live.querySelectorAll(at.same)[at.index]?.focus({ preventScroll: true });
  };

  const pause = (signal) => new Promise((done) => {
    const timer = setTimeout(done, 2000);
    signal.addEventListener("abort", () => { clearTimeout(timer); done(); });
  });

  const open = async () => {
    if (asking) return;
    const { signal } = asking = new AbortController();
    const still = "still" in live.dataset; // then only the freshness is shown
    while (!signal.aborted) {
      try {
        const answer = await fetch(still ? "/" : location.pathname + location.search, { headers: { Accept: "application/json" }, signal });
        const part = await answer.json();
        if (freshness.innerHTML !== part.freshness) freshness.innerHTML = part.freshness;
        if (!still) show(part);
        ended.hidden = true;
      } catch {
        if (!signal.aborted) ended.hidden = false;
      }
      await pause(signal);
    }
  };
  const close = () => { if (asking) asking.abort(); asking = null; };

  document.addEventListener("selectionchange", () => { if (waiting && !selecting()) show(waiting); });
  // A hidden page asks for nothing.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", () => { if (!document.hidden) open(); });
  if (!document.hidden) open();
})();
