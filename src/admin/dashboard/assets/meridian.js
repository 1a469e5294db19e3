// What pages gain by a script: times of the reader's own zone, ages that go on, and parts that come anew when something
// happened. htmx fetches the parts; nothing here decides what is shown.
(() => {
  "use strict";
  const part = document.getElementById("part");
  const state = document.getElementById("live-state");
  const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  const wall = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
  const units = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];

  // As words.rs writes them.
  function age(seconds) {
    const size = Math.abs(seconds);
    let text = size + " s";
    if (size >= 120) {
      const [high, unit, low, lower] = units[size >= 172800 ? 0 : size >= 7200 ? 1 : 2];
      const rest = size >= 600 && high === 60 ? 0 : Math.floor((size % high) / low);
      text = Math.floor(size / high) + " " + unit + (rest ? " " + rest + " " + lower : "");
    }
    return seconds === 0 ? "now" : seconds > 0 ? text + " ago" : "in " + text;
  }

  // The server's clock counts: the page says what it was when it was made, and each part when it was.
  let skew = Date.now() - Number(document.getElementById("live")?.dataset.now || Date.now());

  function times(root) {
    for (const element of root.querySelectorAll("time[datetime]")) {
      const time = new Date(element.dateTime);
      if (Number.isNaN(time.getTime())) continue;
      const utc = element.dateTime.replace("T", " ").replace("Z", " UTC");
      const title = utc + " is " + local.format(time) + " here";
      if (element.title !== title) element.title = title;
      // The stylesheet shows it, where the reader's clock differs; ages have no clock to show.
      const here = time.getTimezoneOffset() === 0 || "ago" in element.dataset ? "" : wall.format(time);
      if (here && element.dataset.local !== here) element.dataset.local = here;
    }
  }

  function ages() {
    const now = Math.floor((Date.now() - skew) / 1000);
    for (const element of document.querySelectorAll("time[data-ago]")) {
      // Times read aloud stay as they are until they are fetched anew.
      if (element.closest("[aria-live]")) continue;
      const text = age(now - Math.floor(Date.parse(element.dateTime) / 1000));
      if (element.textContent !== text) element.textContent = text;
    }
  }

  function live(name, text) {
    if (!state || state.dataset.state === name) return;
    state.dataset.state = name;
    state.textContent = text;
  }

  if (window.Idiomorph) {
    // What the reader opened stays open, what a script drew stays drawn.
    Object.assign(Idiomorph.defaults.callbacks, {
      beforeAttributeUpdated: (name, node) => !(name === "open" && node.tagName === "DETAILS") && !((name === "title" || name === "data-local") && node.tagName === "TIME"),
      beforeNodeMorphed: (node) => !(node.dataset && node.dataset.drawn),
    });
    Idiomorph.defaults.ignoreActiveValue = true;
  }
  // The stream says that something happened; the part is then fetched. A page that nobody sees keeps no stream: browsers have
  // six connections a server for all their windows, and those of hidden pages would leave none for the page in front.
  let stream;
  let again;
  const refresh = () => htmx.trigger(part, "refresh");

  function listen() {
    clearTimeout(again);
    if (stream || document.hidden) return;
    stream = new EventSource("/live");
    stream.addEventListener("open", () => {
      // Something may have happened between the page and the stream.
      refresh();
      live("on", "Live");
    });
    stream.addEventListener("error", () => {
      live("lost", "Connection lost; trying again");
      // The browser tries again by itself unless it was refused. A session that is over looks like this too: a fetch finds out.
      if (stream.readyState !== EventSource.CLOSED) return;
      stream = undefined;
      again = setTimeout(() => { refresh(); listen(); }, 2000 + Math.random() * 4000);
    });
    stream.addEventListener("change", refresh);
    stream.addEventListener("tick", refresh);
  }

  function rest() {
    clearTimeout(again);
    if (!stream) return;
    stream.close();
    stream = undefined;
    live("paused", "Paused");
  }

  if (window.EventSource && window.htmx && part && part.hasAttribute("hx-get")) {
    document.addEventListener("visibilitychange", () => document.hidden ? rest() : listen());
    window.addEventListener("pagehide", rest);
    window.addEventListener("pageshow", listen);
    listen();
  }
  document.body.addEventListener("htmx:afterRequest", (event) => {
    const date = Date.parse(event.detail.xhr.getResponseHeader("Date") || "");
    // The header counts whole seconds; less than that is no difference.
    if (date && Math.abs(Date.now() - date - skew) > 2000) skew = Date.now() - date;
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    times(document);
    document.dispatchEvent(new Event("meridian:fresh"));
  });
  // A session that is over: the page says so by itself when it is loaded anew.
  document.body.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) location.reload();
  });
  times(document);
  setInterval(ages, 1000);
})();
