/* The CDC page: one component, written with the React and Chakra that Airflow's own pages put on globalThis.

   Airflow shows it in two places: in the navigation (a list of all sources, and a page for each) and as a tab of a DAG (that source's
   page). There is no build step. Everything that comes from the server is text of React elements, never markup: a name may hold
   anything. The addresses are relative to the document's base, because Airflow may live under a path of its own. */

const { createElement: h, useCallback, useEffect, useId, useMemo, useRef, useState } = globalThis.React;
const { Badge, Box, Button, Dialog, Flex, Heading, Input, Link, NativeSelect, Portal, SimpleGrid, Table, Text, Textarea } = globalThis.ChakraUI;
const { useLocation, useNavigate } = globalThis.ReactRouterDOM;

const API = "cdc/page/";
const PAGE = 50;
const REFRESH_MS = 10_000;
const SOON_MS = 1000;
const TIMEOUT_MS = 10_000;

/* --- asking the server ------------------------------------------------------------------------------------------------ */

const address = (path, query = {}) => {
  const url = new URL(path, document.baseURI);
  Object.entries(query).forEach(([name, value]) => {
    if (value !== undefined && value !== "" && value !== false) url.searchParams.set(name, value);
  });
  return url.href;
};

const sourcePath = (dagId, resource = "") => `${API}sources/${encodeURIComponent(dagId)}${resource && `/${resource}`}`;

const failure = async (answer) => {
  const body = await answer.json().catch(() => ({}));
  const detail = typeof body.detail === "string" ? body.detail : `The server answered ${answer.status}.`;
  const what = { 401: "Your session has ended. Log in again.", 403: "You may not see this." }[answer.status] || detail;
  return Object.assign(new Error(what), { hint: body.hint || "", status: answer.status, reading: body.reading === true });
};

const ask = async (url, options = {}) => {
  const answer = await fetch(url, { credentials: "same-origin", signal: AbortSignal.timeout(TIMEOUT_MS), ...options });
  if (!answer.ok) throw await failure(answer);
  return answer.json();
};

/* The answer to one question, asked again while the page is looked at. What was shown stays while a new answer is on its way. */
const useAnswer = (url, every = REFRESH_MS) => {
  const [state, setState] = useState({ url: null, data: null, error: null });
  useEffect(() => {
    let current = true;
    let timer = null;
    const look = async () => {
      let pause = every;
      if (!document.hidden) {
        try {
          const data = await ask(url);
          if (data.states && data.states.reading) pause = SOON_MS;
          if (current) setState({ url, data, error: null });
        } catch (error) {
          if (error.reading) pause = SOON_MS;
          const said = error.name === "TimeoutError" ? new Error("The server does not answer.") : error;
          if (current) setState((before) => ({ url, data: before.url === url ? before.data : null, error: said }));
        }
      }
      if (current) timer = setTimeout(look, pause);
    };
    look();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [url, every]);
  return state.url === url ? state : { ...state, error: null, stale: true };
};

/* --- words ------------------------------------------------------------------------------------------------------------ */

const STATES = {
  failed: ["red", "failed", "Something is wrong until somebody corrects it."],
  attention: ["orange", "attention", "Something needs attention."],
  unreachable: ["red", "unreachable", "The store or the source file cannot be read."],
  reading: ["gray", "reading", "The store is being read."],
  catching_up: ["blue", "catching up", "The lake does not have all that was planned or drained."],
  new: ["gray", "new", "No run has planned or drained anything yet."],
  in_step: ["green", "in step", "The lake has all that was planned."],
};
const WINDOW_STATES = {
  planned: ["gray", "planned", "Its bounds are fixed."],
  drained: ["cyan", "drained", "Its batch is stored."],
  acked: ["blue", "acked", "The drain cursor went over it."],
  merging: ["purple", "merging", "It is in the merge in flight."],
  failed: ["red", "failed", "Its merge stopped, or its batch is missing."],
  merged: ["green", "merged", "It is in the lake."],
  rolled_back: ["orange", "rolled back", "The epoch ended before it."],
};
const TABLE_STATES = {
  merged: ["green", "merged"],
  snapshot: ["blue", "snapshot"],
  quarantined: ["orange", "quarantined"],
  resumed: ["blue", "resumed"],
  stopped: ["red", "stopped"],
  dropped: ["gray", "dropped"],
};

const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));
const bytes = (value) => {
  if (value === null || value === undefined) return "–";
  const power = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
  return `${(value / 1024 ** power).toFixed(power ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
};
const duration = (seconds) => {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86_400).toFixed(1)} d`;
};
const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const listed = (...counts) => counts.filter(([count]) => count).map(([count, noun]) => counted(count, noun)).join(", ");
const LONG = 60; // seconds of work from which on a backlog is named
const ago = (time) => (time ? `${duration(Math.max(0, (Date.now() - new Date(time)) / 1000))} ago` : "never");
const clock = (time) => (time ? `${new Date(time).toISOString().slice(0, 19).replace("T", " ")} UTC` : "–");
const rate = (value) => (value === null || value === undefined ? "–" : `${value < 10 ? value.toFixed(1) : number(Math.round(value))} rows/s`);

/* --- small parts ------------------------------------------------------------------------------------------------------ */

const Time = ({ at, none = "never" }) => (at ? h("time", { dateTime: at, title: clock(at), style: { whiteSpace: "nowrap" } }, ago(at)) : none);
const Mark = ({ color, children, title }) => h(Badge, { colorPalette: color, variant: "subtle", title, whiteSpace: "nowrap" }, children);
const StateMark = ({ of, state }) => {
  const [color, word, title] = of[state] || ["gray", state, ""];
  return h(Mark, { color, title }, word);
};
const Mono = (props) => h(Text, { as: "span", fontFamily: "mono", fontSize: "xs", overflowWrap: "break-word", ...props });
const Quiet = (props) => h(Text, { color: "fg.muted", fontSize: "sm", ...props });
const small = (notes) => { const text = notes.filter(Boolean).join(", "); return text ? h(Box, { fontSize: "xs" }, text) : null; };

const Notice = ({ color = "red", title, hint }) =>
  h(Box, { role: color === "red" ? "alert" : "status", borderLeftWidth: "4px", borderColor: `${color}.solid`, bg: `${color}.subtle`, p: 3, my: 2, overflowWrap: "anywhere" },
    h(Text, { fontWeight: "medium" }, title), hint ? h(Quiet, { color: "fg" }, hint) : null);

const Shown = ({ answer, children, empty, waiting = "Loading …" }) => {
  if (answer.error && answer.error.reading && !answer.data) return h(Quiet, { role: "status", py: 4 }, answer.error.message);
  if (answer.error && !answer.data) return h(Notice, { title: answer.error.message, hint: answer.error.hint });
  if (!answer.data) return h(Quiet, { role: "status", py: 4 }, waiting);
  return h(Box, { "aria-busy": Boolean(answer.stale), opacity: answer.stale ? 0.6 : 1 },
    answer.error && !answer.error.reading ? h(Notice, { title: `${answer.error.message} What is shown here was read before.`, hint: answer.error.hint }) : null,
    empty ? h(Quiet, { py: 4 }, empty) : children(answer.data));
};

/* What the address names: a part of the page, and perhaps one item of it. */
const anchor = () => {
  const [part, item] = globalThis.location.hash.slice(1).split("=");
  return { part, item: item ? named(item) : null };
};

/* Scrolls to a part of the page that the address names, and again while the parts above it grow, until somebody scrolls. */
const useAnchor = (part) => {
  const place = useRef(null);
  useEffect(() => {
    if (!part || anchor().part !== part) return undefined;
    const go = () => place.current && place.current.scrollIntoView({ block: "start" });
    const timers = [0, 300, 1000, 2500].map((after) => setTimeout(go, after));
    const stop = () => timers.forEach(clearTimeout);
    const signs = ["wheel", "keydown", "pointerdown"];
    signs.forEach((sign) => globalThis.addEventListener(sign, stop));
    return () => { stop(); signs.forEach((sign) => globalThis.removeEventListener(sign, stop)); };
  }, [part]);
  return place;
};

const Section = ({ title, part, aside, children }) => {
  const id = useId(), place = useAnchor(part);
  return h(Box, { as: "section", "aria-labelledby": id, id: part, ref: place, mt: 6 },
    h(Flex, { justify: "space-between", align: "baseline", wrap: "wrap", gap: 2, mb: 2 },
      h(Heading, { as: "h3", id, size: "md" }, title), aside), children);
};

const Fact = ({ name, children, hint, wide }) =>
  h(Box, { borderWidth: "1px", borderRadius: "md", p: 3, minW: 0, gridColumn: wide ? { base: "1 / -1", md: "auto" } : undefined },
    h(Quiet, { as: "dt", fontSize: "xs" }, name), h(Text, { as: "dd", fontWeight: "medium", overflowWrap: "anywhere", title: hint }, children));

/* A table that scrolls sideways alone, by keyboard too, so that the page never does. On a phone each row is a card, whose cells have
   their column's name above them: everything is in view. A column is [name, key to sort by, numbers, width of a card]. */
const Grid = ({ label, columns, rows, sort }) =>
  h(Box, { overflowX: "auto", tabIndex: 0, role: "region", "aria-label": label, _focusVisible: { outline: "2px solid", outlineColor: "colorPalette.focusRing" } },
    h(Table.Root, { size: "sm", role: "table", display: { base: "block", md: "table" } },
      h(Table.Header, { role: "rowgroup", display: { base: sort ? "block" : "none", md: "table-header-group" } },
        h(Table.Row, { role: "row", display: { base: "flex", md: "table-row" }, flexWrap: "wrap" }, columns.map(([name, key, end]) =>
          h(Table.ColumnHeader, {
              key: name, role: "columnheader", textAlign: end ? "end" : "start", whiteSpace: "nowrap", display: { base: sort && key ? "block" : "none", md: "table-cell" },
              "aria-sort": sort && key === sort.order ? (sort.descending ? "descending" : "ascending") : undefined,
            },
            sort && key
              ? h(Button, { variant: "plain", minW: 0, px: 0, borderWidth: 0, height: "auto", fontSize: "inherit", fontWeight: "inherit", lineHeight: "inherit", color: "inherit", verticalAlign: "baseline", onClick: () => sort.by(key) }, name, key === sort.order ? (sort.descending ? " ▼" : " ▲") : "")
              : name)))),
      h(Table.Body, { role: "rowgroup", display: { base: "block", md: "table-row-group" } }, rows.map(({ key, cells }) =>
        h(Table.Row, { key, role: "row", display: { base: "grid", md: "table-row" }, gridTemplateColumns: "repeat(2, minmax(0, 1fr))", borderBottomWidth: { base: "1px", md: 0 }, py: { base: 2, md: 0 } }, cells.map((cell, place) => {
          const [name, , end, wide] = columns[place];
          return h(Table.Cell, {
              key: name, role: "cell", "data-label": name, verticalAlign: "top", textAlign: { base: "start", md: end ? "end" : "start" },
              display: { base: cell === null || cell === "" ? "none" : "block", md: "table-cell" }, gridColumn: place === 0 || wide ? "1 / -1" : undefined,
              minW: { base: 0, md: place ? undefined : "12em" }, overflowWrap: { base: "anywhere", md: "normal" },
              px: { base: 1, md: 2 }, py: { base: 1, md: 2 }, borderBottomWidth: { base: 0, md: "1px" },
              _before: place ? { content: "attr(data-label)", display: { base: "block", md: "none" }, color: "fg.muted", fontSize: "xs" } : undefined,
            }, cell);
        }))))));

const Pages = ({ offset, total, size, go }) =>
  total > size
    ? h(Flex, { as: "nav", "aria-label": "Pages", align: "center", gap: 3, mt: 2 },
        h(Button, { size: "sm", variant: "outline", disabled: offset === 0, onClick: () => go(Math.max(0, offset - size)) }, "Previous"),
        h(Quiet, null, `${number(offset + 1)}–${number(Math.min(total, offset + size))} of ${number(total)}`),
        h(Button, { size: "sm", variant: "outline", disabled: offset + size >= total, onClick: () => go(offset + size) }, "Next"))
    : null;

const Choice = ({ label, value, set, options }) =>
  h(NativeSelect.Root, { size: "sm", width: "auto" },
    h(NativeSelect.Field, { "aria-label": label, value, onChange: (event) => set(event.target.value) },
      options.map(([key, word]) => h("option", { key, value: key }, word))),
    h(NativeSelect.Indicator));

/* What is typed counts once the typing pauses: the server searches. */
const Search = ({ label, set }) => {
  const [text, setText] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => set(text.trim()), 250);
    return () => clearTimeout(timer);
  }, [text, set]);
  return h(Input, { size: "sm", type: "search", maxLength: 200, "aria-label": label, placeholder: label, width: { base: "100%", md: "18em" }, value: text, onChange: (event) => setText(event.target.value) });
};

/* Below a day it wants a look, as cdc status warns by default; nothing is known of a server that does not purge. */
const Retention = ({ seconds }) => {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds >= 86_400) return duration(seconds);
  return h(Mark, { color: seconds < 14_400 ? "red" : "orange", title: "until the server may purge what is drained next" }, duration(seconds));
};

/* --- the list of sources ---------------------------------------------------------------------------------------------- */

const Sources = ({ open }) => {
  const [text, setText] = useState("");
  const [state, setState] = useState("");
  const [offset, setOffset] = useState(0);
  const answer = useAnswer(address(`${API}sources`, { text, state, offset, limit: PAGE }));
  const search = useCallback((value) => { setText(value); setOffset(0); }, []);
  const counts = answer.data ? answer.data.states : {};
  const options = [["", "All states"], ...Object.keys(STATES).filter((key) => counts[key] || key === state).map((key) => [key, `${STATES[key][1]} (${counts[key] || 0})`])];
  const none = answer.data && !answer.data.total && (text || state ? "No source matches." : "No sources yet. cdc init writes the file of one.");
  return h(Box, null,
    h(Flex, { justify: "space-between", align: "center", wrap: "wrap", gap: 3, mb: 3 },
      h(Heading, { as: "h2", size: "xl" }, "CDC sources"),
      h(Flex, { gap: 2, wrap: "wrap" }, h(Search, { label: "Search sources", set: search }), h(Choice, { label: "State", value: state, set: (value) => { setState(value); setOffset(0); }, options }))),
    h(Shown, { answer, empty: none }, (data) => h(Box, null,
      h(Grid, {
        label: "Sources",
        columns: [["Source"], ["State", null, false, true], ["Lag", null, true], ["Binlog kept", null, true], ["Throughput", null, true], ["Last cut"], ["Tables", null, true], ["In flight", null, true], ["Epoch", null, true], ["Server, drained to", null, false, true]],
        rows: data.sources.map((one) => ({ key: one.dag_id, cells: [
          h(Link, { href: address(`plugin/cdc/${encodeURIComponent(one.dag_id)}`), fontWeight: "semibold", overflowWrap: "anywhere", onClick: (event) => open(event, one.dag_id) }, one.source),
          h(Box, { minW: "14em", maxW: "30em", overflowWrap: "anywhere" }, h(StateMark, { of: STATES, state: one.state }),
            one.what ? h(Quiet, { fontSize: "xs", title: `${one.what} ${one.hint}`, lineClamp: 3 }, one.what, one.findings > 1 ? ` and ${one.findings - 1} more` : "") : null),
          ["unreachable", "reading"].includes(one.state) ? "–" : h(Box, { whiteSpace: "nowrap" }, duration(one.lag_seconds), one.lag_bytes ? h(Quiet, { fontSize: "xs" }, bytes(one.lag_bytes)) : null),
          h(Retention, { seconds: one.retention_left_seconds }),
          rate(one.rows_per_second),
          h(Time, { at: one.cut_at }),
          h(Box, null, number(one.tables), one.quarantined ? h(Quiet, { fontSize: "xs" }, `${one.quarantined} quarantined`) : null),
          number(one.in_flight), one.epoch === null ? "–" : one.epoch, h(Box, { whiteSpace: "nowrap" }, h(Mono, null, one.server), h("br"), h(Mono, { color: "fg.muted" }, one.drained_to)),
        ] })),
      }),
      h(Pages, { offset, total: data.total, size: PAGE, go: setOffset }))));
};

/* --- pictures --------------------------------------------------------------------------------------------------------- */

const WIDTH = 600;
const HEIGHT = 200;
const LEFT = 64;
const TOP = 16;
const BOTTOM = 24;
const RIGHT = 8;

const nice = (value) => {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
};

const height = (part) => TOP + (1 - part) * (HEIGHT - BOTTOM - TOP);

const Axes = ({ top, word, since, until }) => {
  const hours = [0, 0.25, 0.5, 0.75, 1];
  const at = (part) => new Date(new Date(since).getTime() + part * (new Date(until) - new Date(since))).toISOString().slice(11, 16);
  return h("g", { fontSize: 14, fill: "currentColor", opacity: 0.75 },
    [0, 0.5, 1].map((part) => h("g", { key: part },
      h("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: height(part), y2: height(part), stroke: "currentColor", opacity: 0.2 }),
      h("text", { x: LEFT - 6, y: 5 + height(part), textAnchor: "end" }, word(top * part)))),
    hours.map((part) => h("text", { key: `t${part}`, x: LEFT + part * (WIDTH - RIGHT - LEFT), y: HEIGHT - 6, textAnchor: part === 0 ? "start" : part === 1 ? "end" : "middle" }, at(part))));
};

const Picture = ({ title, label, children }) =>
  h(Box, { as: "figure", minW: 0 },
    h(Quiet, { as: "figcaption", mb: 1 }, title),
    h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: "100%", role: "img", "aria-label": label, style: { display: "block" } }, children));

const Day = ({ title, unit, word, points, since, until, color, steps }) => {
  const from = new Date(since).getTime();
  const span = new Date(until).getTime() - from;
  const known = points.filter((point) => point.value !== null);
  const top = nice(Math.max(0, ...known.map((point) => point.value)));
  const x = (at) => LEFT + Math.max(0, (new Date(at).getTime() - from) / span) * (WIDTH - RIGHT - LEFT);
  const y = (value) => height(value / top);
  const last = known[known.length - 1];
  const most = known.reduce((best, point) => (best && best.value >= point.value ? best : point), null);
  const label = last ? `${title}: last ${word(last.value)}, most ${word(most.value)} at ${clock(most.at)}` : `${title}: nothing known`;
  return h(Picture, { title: `${title} (${unit})`, label },
    h(Axes, { top, word, since, until }),
    steps
      ? known.map((point) => h("rect", { key: point.key, x: x(point.at) - 2, width: 4, y: y(point.value), height: Math.max(0, HEIGHT - BOTTOM - y(point.value)), fill: color }, h("title", null, `${clock(point.at)}: ${word(point.value)}`)))
      : h("g", null,
          h("polyline", { points: known.map((point) => `${x(point.at)},${y(point.value)}`).join(" "), fill: "none", stroke: color, strokeWidth: 2, strokeLinejoin: "round" }),
          known.map((point) => h("circle", { key: point.key, cx: x(point.at), cy: y(point.value), r: 3, fill: color }, h("title", null, `${clock(point.at)}: ${word(point.value)}`)))));
};

const Bars = ({ bars, other }) => {
  const all = other ? [...bars, { table: "all others", rows: other }] : bars;
  const most = Math.max(1, ...all.map((bar) => bar.rows));
  return h(Box, { as: "ul", listStyleType: "none", "aria-label": "Rows by table" }, all.map((bar) =>
    h(Box, { as: "li", key: bar.table, mb: 1 },
      h(Flex, { justify: "space-between", gap: 2, fontSize: "xs" }, h(Mono, { overflowWrap: "anywhere", minW: 0 }, bar.table), h("span", null, number(bar.rows))),
      h(Box, { "aria-hidden": true, height: "8px", bg: "bg.muted", borderRadius: "sm" },
        h(Box, { height: "8px", bg: "blue.solid", borderRadius: "sm", style: { width: `${(100 * bar.rows) / most}%` } })))));
};

const Pictures = ({ dagId }) => {
  const answer = useAnswer(address(sourcePath(dagId, "history")), 30_000);
  const empty = answer.data && !answer.data.points.length && "No merge in the last day.";
  return h(Section, { title: "The last day" }, h(Shown, { answer, empty }, (data) => {
    const points = (value) => data.points.map((point, place) => ({ key: place, at: point.at, value: value(point) }));
    const times = { since: data.since, until: data.until };
    return h(SimpleGrid, { columns: { base: 1, xl: 3 }, gap: 6 },
      h(Day, { title: "Lag at each cut", unit: "age of the last change", word: duration, color: "var(--chakra-colors-orange-solid)", points: points((point) => point.lag_seconds), ...times }),
      h(Day, { title: "Rows merged by each cut", unit: "rows", word: (value) => number(Math.round(value)), color: "var(--chakra-colors-blue-solid)", steps: true, points: points((point) => point.rows), ...times }),
      h(Box, { minW: 0 }, h(Quiet, { mb: 1 }, "Rows merged by table"), h(Bars, { bars: data.bars, other: data.other })));
  }));
};

/* --- one source ------------------------------------------------------------------------------------------------------- */

const Windows = ({ dagId }) => {
  const asked = () => (anchor().part === "windows" ? anchor().item : null);
  const [picked, setPicked] = useState(asked);
  useEffect(() => {
    const follow = () => setPicked(asked());
    globalThis.addEventListener("hashchange", follow);
    return () => globalThis.removeEventListener("hashchange", follow);
  }, []);
  const [offset, setOffset] = useState(0);
  const answer = useAnswer(address(sourcePath(dagId, "windows")));
  const empty = answer.data && !answer.data.total && "No window was planned yet. The first run plans one.";
  return h(Section, { title: "Windows", part: "windows", aside: answer.data ? h(Flex, { gap: 2, wrap: "wrap" }, Object.entries(answer.data.states).map(([state, count]) =>
    h(Flex, { key: state, gap: 1, align: "center" }, h(StateMark, { of: WINDOW_STATES, state }), h(Quiet, { as: "span" }, count)))) : null },
    h(Shown, { answer, empty }, (data) => {
      const line = [...data.windows].reverse();
      const rows = picked === null ? data.windows.slice(offset, offset + 10) : data.windows.filter((one) => one.id === picked);
      return h(Box, null,
        h(Flex, { role: "group", "aria-label": "Windows, oldest first", gap: "2px", wrap: "wrap", mb: 3 }, line.map((one) =>
          h("button", {
            key: one.id, type: "button", "aria-pressed": picked === one.id,
            "aria-label": `${(WINDOW_STATES[one.state] || ["", one.state])[1]}, ${counted(one.rows, "row")}, ${one.start} to ${one.stop}`,
            title: `${(WINDOW_STATES[one.state] || ["", one.state])[1]}: ${counted(one.rows, "row")}, ${one.start} to ${one.stop}`,
            onClick: () => setPicked(picked === one.id ? null : one.id),
            style: { width: 14, height: 26, borderRadius: 3, cursor: "pointer", border: picked === one.id ? "2px solid currentColor" : "none", background: `var(--chakra-colors-${(WINDOW_STATES[one.state] || ["gray"])[0]}-solid)` },
          }))),
        picked === null ? null : h(Button, { size: "xs", variant: "outline", mb: 2, onClick: () => setPicked(null) }, "Show all windows"),
        rows.length ? null : h(Quiet, { role: "status" }, "This window is not one of the last hundred. cdc batches list shows older ones."),
        h(Grid, {
          label: "Windows, latest first",
          columns: [["Window"], ["State"], ["Rows", null, true], ["Bytes", null, true], ["Transactions", null, true], ["Tables", null, true], ["Last change"], ["Acked"], ["Merged"], ["Notes", null, false, true]],
          rows: rows.map((one) => ({ key: one.id, cells: [
            h(Box, null, h(Mono, { whiteSpace: "nowrap" }, one.start), h("br"), h(Mono, { whiteSpace: "nowrap" }, one.stop), h(Quiet, { fontSize: "xs" }, `epoch ${one.epoch}`)),
            h(StateMark, { of: WINDOW_STATES, state: one.state }), number(one.rows), bytes(one.bytes), number(one.transactions), number(one.tables),
            h(Time, { at: one.last_time, none: "–" }), h(Time, { at: one.acked_at, none: "–" }), h(Time, { at: one.merged_at, none: "–" }),
            small([
              one.reselected && "re-selected", one.partial_rows && counted(one.partial_rows, "partial row"),
              one.statements && counted(one.statements, "DDL statement"), one.quarantined && `${counted(one.quarantined, "table")} quarantined`,
            ]),
          ] })),
        }),
        picked === null ? h(Pages, { offset, total: data.windows.length, size: 10, go: setOffset }) : null);
    }));
};

const Verdict = ({ one, verdict }) => {
  if (!one) return verdict === "part" ? h(Mark, { color: "blue", title: "Some of its rows were compared with the source; all of them at once never were" }, "in part") : h(Mark, { color: "gray", title: "No row was compared with the source yet" }, "never");
  const wrong = [[one.missing, "missing"], [one.extra, "extra"], [one.different, "different"], [one.unexamined, "not looked at"]].filter(([count]) => count).map(([count, what]) => `${number(count)} ${what}`).join(", ");
  return h(Box, null, h(Mark, { color: one.clean ? "green" : "red", title: `as of ${one.position}` }, one.clean ? "equal" : "drift"), " ", h(Quiet, { as: "span", fontSize: "xs" }, h(Time, { at: one.at })),
    wrong ? h(Quiet, { fontSize: "xs" }, wrong) : null);
};

const ChangedRows = ({ one }) => {
  if (!one || (!one.compared && !one.wrong)) return null;
  const said = one.wrong ? `merges brought ${counted(one.wrong, "wrong row")}` : `last merge: ${number(one.equal)} of ${counted(one.compared, "row")} equal`;
  return h(Quiet, { fontSize: "xs", color: one.wrong ? "red.500" : "fg.muted", title: `as of ${one.position}${one.gtid_set ? `, GTIDs ${one.gtid_set}` : ""}; the other rows of the table were not compared` }, said, " ", h(Time, { at: one.at }));
};

const Covered = ({ one }) => {
  if (!one) return null;
  if (one.skipped) return h(Quiet, { fontSize: "xs", title: one.skipped }, "not compared by ranges");
  const said = one.wrong ? `ranges have ${counted(one.wrong, "wrong row")}` : `${Math.floor(100 * one.ratio)} % compared by ranges`;
  return h(Quiet, { fontSize: "xs", color: one.wrong ? "red.500" : one.overdue ? "orange.500" : "fg.muted", title: one.position ? `the oldest range as of ${one.position}` : "some ranges were never compared" }, said, ", oldest ", h(Time, { at: one.oldest_at }));
};

const Tables = ({ dagId, act }) => {
  const [text, setText] = useState("");
  const [state, setState] = useState("");
  const [offset, setOffset] = useState(0);
  const [sort, setSort] = useState({ order: "table", descending: false });
  const answer = useAnswer(address(sourcePath(dagId, "tables"), { text, state, offset, order: sort.order, descending: sort.descending }));
  const search = useCallback((value) => { setText(value); setOffset(0); }, []);
  const by = (order) => { setSort((before) => ({ order, descending: before.order === order ? !before.descending : order !== "table" })); setOffset(0); };
  const counts = answer.data ? answer.data.counts : {};
  const words = { ...Object.fromEntries(Object.entries(TABLE_STATES).map(([key, value]) => [key, value[1]])), equal: "verified equal", drift: "with drift", part: "verified in part", never: "never verified" };
  const options = [["", "All tables"], ...Object.keys(words).filter((key) => counts[key] || key === state).map((key) => [key, `${words[key]} (${number(counts[key] || 0)})`])];
  const empty = answer.data && !answer.data.total && (text || state ? "No table matches." : "No table is in the lake yet. The first merge brings them.");
  return h(Section, { title: "Tables", part: "tables", aside: h(Flex, { gap: 2, wrap: "wrap" }, h(Search, { label: "Search tables", set: search }), h(Choice, { label: "Table state", value: state, set: (value) => { setState(value); setOffset(0); }, options })) },
    h(Shown, { answer, empty }, (data) => h(Box, null,
      h(Grid, {
        label: "Tables", sort: { ...sort, by },
        columns: [["Table", "table"], ["State", null, false, true], ["Rows", "rows", true], ["Last change", "last_change"], ["Verified", "verified", false, true], ["Mode"], ["Schemas", null, true], ["Lake table", null, false, true], ...(act ? [["Actions", null, false, true]] : [])],
        rows: data.tables.map((one) => ({ key: `${one.table} ${one.lake_table}`, cells: [
          h(Mono, { fontSize: "sm" }, one.table),
          h(Box, { maxW: "28em", overflowWrap: "anywhere" }, h(StateMark, { of: TABLE_STATES, state: one.state }), one.note ? h(Quiet, { fontSize: "xs" }, one.note) : null, one.as_of ? h(Quiet, { fontSize: "xs" }, `as of ${one.as_of}`) : null),
          h("span", { title: "in the lake table, as of the last cut" }, number(one.rows)),
          h(Time, { at: one.last_change, none: "–" }), h(Box, null, h(Verdict, { one: one.verified, verdict: one.verdict }), h(ChangedRows, { one: one.changed }), h(Covered, { one: one.covered })), one.mode || "–", number(one.schema_versions), h(Mono, null, one.lake_table || "–"),
          ...(act ? [h(Flex, { gap: 1 }, TABLE_ACTIONS.filter((kind) => act.may(kind) && isFor(kind, one)).map((kind) =>
            h(Button, { key: kind, size: "xs", variant: "outline", disabled: act.off(kind), "aria-label": `${ACTIONS[kind][0]} ${one.table}`, onClick: () => act.on(kind, one.table, one.question) }, ACTIONS[kind][0])))] : []),
        ] })),
      }),
      h(Pages, { offset, total: data.total, size: PAGE, go: setOffset }))));
};

const Cuts = ({ dagId }) => {
  const [offset, setOffset] = useState(0);
  const answer = useAnswer(address(sourcePath(dagId, "cuts"), { offset, limit: 10 }));
  const empty = answer.data && !answer.data.total && "No cut was published yet. The first merge publishes one.";
  return h(Section, { title: "Cuts", part: "cuts" }, h(Shown, { answer, empty }, (data) => h(Box, null,
    h(Grid, {
      label: "Cuts, latest first",
      columns: [["Position"], ["Epoch", null, true], ["Last commit"], ["Published"], ["Tables", null, true], ["Changes", null, true], ["Notes", null, false, true]],
      rows: data.cuts.map((one) => ({ key: one.merge_id, cells: [
        h(Mono, { whiteSpace: "nowrap", title: one.merge_id }, one.position), one.epoch, clock(one.event_time), h(Time, { at: one.at }), number(one.tables), number(one.changes),
        small([one.reselected && `${counted(one.reselected, "table")} re-selected`, one.quarantined && `${one.quarantined} quarantined`]),
      ] })),
    }),
    h(Pages, { offset, total: data.total, size: 10, go: setOffset }))));
};

const Moves = ({ dagId }) => {
  const [cursor, setCursor] = useState("drain");
  const [offset, setOffset] = useState(0);
  const answer = useAnswer(address(sourcePath(dagId, "moves"), { cursor, offset, limit: 10 }));
  const empty = answer.data && !answer.data.total && "This cursor has not moved yet.";
  const choose = h(Choice, { label: "Cursor", value: cursor, set: (value) => { setCursor(value); setOffset(0); }, options: [["drain", "drain cursor"], ["lake", "lake cursor"]] });
  return h(Section, { title: "Moves of the cursor", aside: choose }, h(Shown, { answer, empty }, (data) => h(Box, null,
    h(Grid, {
      label: "Moves, latest first",
      columns: [["When"], ["How"], ["From"], ["To"], ["By"], ["Why", null, false, true]],
      rows: data.moves.map((one, place) => ({ key: `${offset + place}`, cells: [
        h(Time, { at: one.at }), one.kind, h(Mono, { whiteSpace: "nowrap" }, one.start || "–"), h(Mono, { whiteSpace: "nowrap" }, one.stop), h(Mono, null, one.by), h(Box, { overflowWrap: "anywhere" }, one.why)] })),
    }),
    h(Pages, { offset, total: data.total, size: 10, go: setOffset }))));
};

/* --- actions ---------------------------------------------------------------------------------------------------------- */

/* Each is a run of a DAG, made with the user's own session by Airflow's API, which authorises it and writes it to the audit log. The
   body is JSON: a page of another site cannot send that with this user's cookie. */
const trigger = (dagId, conf) =>
  ask(address(`api/v2/dags/${encodeURIComponent(dagId)}/dagRuns`), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ logical_date: null, conf, note: "from the CDC page" }),
  });

const ACTIONS = {
  run: ["Run now", "Plan, drain and merge now."],
  verify: ["Verify", "Compare the tables of verify.tables with the source."],
  snapshot: ["Snapshot", "Read tables, or rows of one, again from the source."],
  backfill: ["Backfill", "Merge stored batches of a period again."],
  resume: ["Resume", "Follow a quarantined table again."],
  answer: ["Answer", "Decide about the schema change at which a table waits."],
  rewind: ["Rewind", "Find a position in the binlog, and continue the drain there if wanted."],
};
const HEAD_ACTIONS = ["run", "verify", "snapshot", "backfill", "rewind"];
const TABLE_ACTIONS = ["answer", "snapshot", "backfill", "resume"];

/* Of a quarantined table no snapshot can be asked for: resuming it asks for one. */
const isFor = (kind, { state, question }) =>
  kind === "answer" ? Boolean(question && !question.answer) : (kind === "resume") === (state === "quarantined") && state !== "dropped";

const Labelled = ({ label, children }) => {
  const id = useId();
  return h(Box, null, h("label", { htmlFor: id }, h(Quiet, { as: "span" }, label)), children(id));
};

const Field = ({ label, of = Input, ...rest }) => h(Labelled, { label }, (id) => h(of, { id, size: "sm", autoComplete: "off", ...rest }));

const Pick = ({ label, value, set, options }) =>
  h(Labelled, { label }, (id) => h(NativeSelect.Root, { size: "sm" },
    h(NativeSelect.Field, { id, value, onChange: (event) => set(event.target.value) }, options.map(([key, word]) => h("option", { key, value: key }, word))),
    h(NativeSelect.Indicator)));

/* What is asked for in words, with its fields, and a button that does it. The keyboard stays inside until it is done or cancelled; a
   click beside it does not throw away what was typed. */
const Confirm = ({ title, name, words, submit, danger, harmless, wrong, conf, asked, children }) => {
  const start = useRef(null);
  const onSubmit = (event) => {
    event.preventDefault();
    if (!wrong && !asked.busy) asked.send(conf());
  };
  return h(Dialog.Root, {
      open: true, role: danger ? "alertdialog" : "dialog", size: { mdDown: "full", md: "lg" }, closeOnInteractOutside: false,
      initialFocusEl: () => start.current.querySelector("input, select, textarea") || start.current.querySelector("button"),
      onOpenChange: ({ open }) => { if (!open) asked.close(); },
    },
    h(Portal, null, h(Dialog.Backdrop), h(Dialog.Positioner, null, h(Dialog.Content, { ref: start },
      h("form", { "aria-label": name, onSubmit },
        h(Dialog.Header, null, h(Dialog.Title, { overflowWrap: "anywhere" }, title)),
        h(Dialog.Body, null,
          h(Dialog.Description, { mb: 3 }, words),
          h(Flex, { direction: "column", gap: 3 }, children),
          asked.error ? h(Notice, { title: asked.error.message, hint: asked.error.hint }) : null),
        h(Dialog.Footer, { flexWrap: "wrap" },
          wrong ? h(Quiet, { role: "status", flex: "1" }, wrong) : null,
          h(Button, { size: "sm", variant: "outline", onClick: asked.close }, "Cancel"),
          h(Button, { type: "submit", size: "sm", colorPalette: danger && !harmless ? "red" : undefined, disabled: Boolean(wrong), loading: asked.busy }, submit)))))));
};

const useValues = (first) => {
  const [values, setValues] = useState(first);
  const put = (name, value) => setValues((before) => ({ ...before, [name]: value }));
  return [values, put, (name) => ({ value: values[name], onChange: (event) => put(name, event.target.value) })];
};

const linesOf = (text) => text.split(/\n/).map((one) => one.trim()).filter(Boolean);
const utc = (text) => (text ? `${text.length === 16 ? `${text}:00` : text}Z` : null);

/* Of a table of the list the name is taken as it is, whatever it holds; what is typed is a list of names and patterns. */
const namesOf = (table, typed) => (table === null ? linesOf(typed) : [table]);

const BackfillForm = ({ table, asked }) => {
  const [values, put, field] = useValues({ tables: "", from: "", to: "", into: "live" });
  const conf = () => ({ tables: namesOf(table, values.tables), from: utc(values.from), to: utc(values.to), into: values.into });
  return h(Confirm, {
      title: table === null ? "Backfill" : `Backfill ${table}`, name: "Backfill", submit: "Start backfill", conf, asked,
      words: "Merges the stored batches of a period again. The source is not asked, and no cursor moves.",
    },
    table === null ? h(Field, { of: Textarea, rows: 3, label: "Tables, one on a line (database.table or a pattern; empty for all)", ...field("tables") }) : null,
    h(Field, { label: "From (UTC; empty for the beginning)", type: "datetime-local", ...field("from") }),
    h(Field, { label: "To (UTC; empty for the end)", type: "datetime-local", ...field("to") }),
    h(Pick, { label: "Into", value: values.into, set: (into) => put("into", into), options: [["live", "into the lake tables"], ["copy", "into tables beside them"]] }));
};

const SnapshotForm = ({ table, asked }) => {
  const [values, put, field] = useValues({ tables: "", rows: "all", keyFrom: "", keyTo: "", where: "", why: "" });
  const tables = namesOf(table, values.tables);
  const part = { keys: values.keyFrom.trim() || values.keyTo.trim(), where: values.where.trim() }[values.rows];
  const wrong = !tables.length ? "Name a table." : values.rows === "all" ? "" : tables.length > 1 ? "Rows are read of one table at a time." : part ? "" : "Name the keys or the condition.";
  const conf = () => ({
    tables, why: values.why.trim(),
    key_from: values.rows === "keys" ? values.keyFrom.trim() : "",
    key_to: values.rows === "keys" ? values.keyTo.trim() : "",
    where: values.rows === "where" ? values.where.trim() : "",
  });
  return h(Confirm, {
      title: table === null ? "Snapshot tables" : `Snapshot ${table}`, name: "Snapshot", submit: "Request snapshot", wrong, conf, asked,
      words: values.rows === "all"
        ? "The next runs read all rows by SELECT and merge them. Until then the lake table stays as it is."
        : "The next runs read these rows by SELECT and merge them. Merging of the table continues meanwhile.",
    },
    table === null ? h(Field, { of: Textarea, rows: 3, label: "Tables, one on a line (database.table or a pattern)", ...field("tables") }) : null,
    h(Pick, { label: "Rows", value: values.rows, set: (rows) => put("rows", rows), options: [["all", "all rows"], ["keys", "a range of keys"], ["where", "rows that match a condition"]] }),
    values.rows === "keys" ? h(Field, { label: "From key (empty for the least; [1, 5] for two columns)", ...field("keyFrom") }) : null,
    values.rows === "keys" ? h(Field, { label: "To key, which is read too (empty for the greatest)", ...field("keyTo") }) : null,
    values.rows === "where" ? h(Field, { label: "Condition, as created >= '2026-01-01'", ...field("where") }) : null,
    h(Field, { label: "Reason (kept in the cursor)", ...field("why") }));
};

const ResumeForm = ({ table, asked }) =>
  h(Confirm, {
    title: `Resume ${table}`, name: "Resume", submit: "Resume table", asked, conf: () => ({ table }),
    words: "Ends the quarantine. The next runs read the whole table, merge it, and follow it from then on. First correct what it was quarantined for, or the next run quarantines it again.",
  });

const DECISIONS = { follow: "follow: the lake does as the source", keep: "keep: the lake keeps what it has" };

const AnswerForm = ({ table, question, asked }) => {
  const { what, change, decisions, position } = question;
  const [values, put] = useValues({ answer: decisions.length === 1 ? decisions[0] : "" });
  const removes = change === "truncate" || change === "drop_table";
  return h(Confirm, {
      title: `Answer for ${table}`, name: "Answer", submit: "Record answer", danger: removes, asked,
      wrong: values.answer ? "" : "Choose an answer.",
      conf: () => ({ table, answer: values.answer, position }),
      words: `${what[0].toUpperCase()}${what.slice(1)}. The answer is about this statement only, and is not changed later. The next merge applies it${removes ? "; follow removes the rows of the lake table" : ""}.`,
    },
    h(Pick, { label: "Answer", value: values.answer, set: (answer) => put("answer", answer), options: [...(decisions.length > 1 ? [["", "…"]] : []), ...decisions.map((one) => [one, DECISIONS[one]])] }));
};

const PLACES = {
  time: ["a time", "Time (UTC): what was committed then or later is read again"],
  position: ["a position", "Position, as binlog.000012:1079"],
  gtid: ["a set of GTIDs", "GTIDs: every transaction that is not among them is read again"],
  undo: ["before the last move", ""],
};

const RewindForm = ({ source, asked }) => {
  const [values, put, field] = useValues({ kind: "time", time: "", position: "", gtid: "", move: false, sure: false, why: "" });
  const { kind } = values, move = values.move || kind === "undo";
  const given = kind === "undo" ? "undo" : values[kind].trim();
  const wrong = !given ? "Choose a position." : move && !values.why.trim() ? "A move needs a reason." : move && !values.sure ? "Confirm the move." : "";
  const conf = () => ({
    time: kind === "time" ? utc(given) : null, position: kind === "position" ? given : "", gtid: kind === "gtid" ? given : "",
    undo: kind === "undo", move, why: values.why.trim(),
  });
  return h(Confirm, {
      title: `Rewind ${source}`, name: "Rewind", submit: move ? "Move cursor" : "Find position", danger: true, harmless: !move, wrong, conf, asked,
      words: move
        ? "The drain cursor moves to this position, in a new epoch. What follows is read and merged again. A position after the cursor leaves out the changes between them for ever."
        : "Nothing moves. The log of the task names the position.",
    },
    h(Pick, { label: "To", value: kind, set: (one) => put("kind", one), options: Object.entries(PLACES).map(([key, [word]]) => [key, word]) }),
    kind === "undo" ? null : h(Field, { key: kind, label: PLACES[kind][1], type: kind === "time" ? "datetime-local" : "text", step: kind === "time" ? 1 : undefined, ...field(kind) }),
    kind === "undo" ? null : h(Pick, { label: "Do", value: move ? "move" : "find", set: (what) => put("move", what === "move"), options: [["find", "find the position only"], ["move", "move the drain cursor there"]] }),
    move ? h(Field, { label: "Reason (kept in the cursor)", ...field("why") }) : null,
    move ? h("label", null, h("input", { type: "checkbox", checked: values.sure, onChange: (event) => put("sure", event.target.checked), style: { marginInlineEnd: 8 } }), `Move the drain cursor of ${source}`) : null);
};

const FORMS = { backfill: BackfillForm, snapshot: SnapshotForm, resume: ResumeForm, answer: AnswerForm, rewind: RewindForm };

/* Why buttons are off: a run of such a DAG would not begin. */
const NotReady = ({ state, dags }) => {
  if (!dags.length) return null;
  const links = dags.map((dag, place) => h(Box, { key: dag, as: "span" }, place ? ", " : "", h(Link, { href: address(`dags/${encodeURIComponent(dag)}`), overflowWrap: "anywhere" }, dag)));
  return state === "paused"
    ? h(Notice, { color: "orange", title: h(Box, { as: "span" }, "Paused in Airflow: ", links), hint: "No run of a paused DAG begins. Unpause it, with the switch at its name in Airflow's list of DAGs." })
    : h(Notice, { color: "orange", title: `Not in Airflow: ${dags.join(", ")}`, hint: "Deleted, or not read by Airflow yet. Airflow makes it again when it next reads its files, within some minutes, or at once with airflow dags reserialize. Then unpause the DAG of the source. Its next run continues at the cursors: nothing is lost." });
};

const useActions = (dagId, source) => {
  const answer = useAnswer(address(sourcePath(dagId, "actions")), 60_000);
  const [form, setForm] = useState(null);
  const [done, setDone] = useState(null);
  const [busy, setBusy] = useState(false);
  const found = answer.data ? answer.data.actions : [];
  const of = (kind) => found.find((one) => one.kind === kind);
  const off = (kind) => busy || of(kind).state !== "ready";
  const send = async (action, conf) => {
    setBusy(true);
    setDone(null);
    try {
      const run = await trigger(action.dag_id, conf);
      setDone({ action, runId: run.dag_run_id });
      setForm(null);
    } catch (error) {
      setDone({ error });
    }
    setBusy(false);
  };
  const on = (kind, table = null, question = null) => {
    setDone(null);
    if (FORMS[kind]) setForm({ kind, table, question });
    else send(of(kind), {});
  };
  const head = HEAD_ACTIONS.filter(of);
  const buttons = head.length
    ? h(Flex, { gap: 2, wrap: "wrap", role: "group", "aria-label": "Actions" }, head.map((kind) =>
        h(Button, { key: kind, size: "sm", variant: "outline", disabled: off(kind), title: ACTIONS[kind][1], onClick: () => on(kind) }, ACTIONS[kind][0])))
    : null;
  const action = form && of(form.kind);
  const asked = action && { busy, error: done && done.error, send: (conf) => send(action, conf), close: () => setForm(null) };
  const below = h(Box, { "aria-live": "polite" },
    ["missing", "paused"].map((state) => h(NotReady, { key: state, state, dags: found.filter((one) => one.state === state).map((one) => one.dag_id) })),
    asked ? h(FORMS[form.kind], { key: `${form.kind} ${form.table}`, table: form.table, question: form.question, source, asked }) : null,
    done && done.error && !form ? h(Notice, { title: done.error.message, hint: done.error.hint }) : null,
    done && done.runId ? h(Box, { borderLeftWidth: "4px", borderColor: "green.solid", bg: "green.subtle", p: 3, my: 2 },
      h(Text, { as: "span" }, `${ACTIONS[done.action.kind][0]} started: `), h(Link, { href: address(`dags/${encodeURIComponent(done.action.dag_id)}/runs/${encodeURIComponent(done.runId)}`), overflowWrap: "anywhere" }, done.runId)) : null);
  return { buttons, below, act: TABLE_ACTIONS.some(of) ? { may: of, off, on } : null };
};

const Findings = ({ data }) => (data.findings_total
  ? h(Box, { as: "section", "aria-label": "Findings", mt: 3 }, data.findings.map((one, place) => h(Notice, { key: place, color: one.level === "error" ? "red" : "orange", title: one.what, hint: one.hint })),
      data.findings_total > data.findings.length ? h(Quiet, null, `and ${number(data.findings_total - data.findings.length)} more; see cdc status ${data.source}`) : null)
  : null);

const Epochs = ({ epochs }) => (epochs.length
  ? h(Section, { title: "Epochs" }, h(Grid, { label: "Epochs, latest first", columns: [["Epoch"], ["Since"], ["How"], ["By"], ["Why", null, false, true], ["From", null, false, true], ["To", null, false, true]], rows: epochs.map((one) => ({ key: one.epoch, cells: [
      one.epoch, clock(one.at), one.kind, h(Mono, null, one.by), h(Box, { overflowWrap: "anywhere" }, one.why), h(Mono, null, one.previous_end), h(Mono, null, one.new_start)] })) }))
  : null);

const Source = ({ dagId, back }) => {
  const answer = useAnswer(address(sourcePath(dagId)));
  const { buttons, below, act } = useActions(dagId, answer.data ? answer.data.source : "");
  if (answer.error && answer.error.status === 404) return h(Quiet, { py: 4 }, "This DAG is not that of a CDC source.");
  return h(Box, null,
    back ? h(Link, { href: address("plugin/cdc"), onClick: back, mb: 2, display: "inline-block" }, "← All sources") : null,
    h(Shown, { answer }, (data) => h(Box, null,
      h(Flex, { justify: "space-between", align: "center", wrap: "wrap", gap: 3 },
        h(Flex, { gap: 3, align: "center", wrap: "wrap" }, h(Heading, { as: "h2", size: "xl", overflowWrap: "anywhere" }, data.source), h(StateMark, { of: STATES, state: data.state }),
          back ? h(Link, { href: address(`dags/${encodeURIComponent(dagId)}`) }, "DAG") : null),
        buttons),
      below,
      h(Findings, { data }),
      h(SimpleGrid, { as: "dl", columns: { base: 2, md: 3 }, gap: 3, mt: 3 },
        h(Fact, { name: "Lag", hint: "Age of the oldest change that is not in the lake, as far as the store tells" }, duration(data.lag_seconds), data.lag_bytes === null ? "" : `, ${bytes(data.lag_bytes)}`,
          data.catch_up_seconds >= LONG ? h(Quiet, { title: "Until all of the binlog is drained, at the rate of the last backlog" }, `drained in about ${duration(data.catch_up_seconds)}`) : null),
        h(Fact, { name: "Binlog kept for", hint: `Until the server may purge what is drained next, as a plan saw ${ago(data.server_seen_at)}` }, h(Retention, { seconds: data.retention_left_seconds })),
        h(Fact, { name: "Throughput of the last merges" }, rate(data.rows_per_second)),
        h(Fact, { name: "Last cut" }, h(Time, { at: data.cut_at })),
        h(Fact, { name: "In flight" }, listed([data.windows_in_flight, "window"], [data.snapshots, "snapshot"]) || "nothing"),
        h(Fact, { name: "Drained to" }, data.drain && !data.drain.has_begun_only ? h(Mono, { fontSize: "sm", overflowWrap: "anywhere" }, data.drain.position) : "no drain yet"),
        h(Fact, { name: "Merged to" }, data.lake && data.cut_at ? h(Mono, { fontSize: "sm", overflowWrap: "anywhere" }, data.lake.position) : "no merge yet"),
        h(Fact, { name: "Epoch" }, data.drain ? data.drain.epoch : "–"),
        h(Fact, { name: "Server", wide: true }, h(Mono, { fontSize: "sm", overflowWrap: "anywhere" }, data.drain ? data.drain.server : data.server))),
      h(Pictures, { dagId }), h(Windows, { dagId }), h(Tables, { dagId, act }), h(Cuts, { dagId }), h(Moves, { dagId }), h(Epochs, { epochs: data.epochs }),
      h(Quiet, { mt: 6, fontSize: "xs" }, "Read from the store ", h(Time, { at: data.read_at }), ". The source database is not asked."))));
};

/* --- the component ---------------------------------------------------------------------------------------------------- */

/* Only the main DAG of a source is named like it; the others of the source have a dot, which no name of a source has. */
const sourceDag = (dagId) => dagId.replace(/\.[^.]+$/, "");

const named = (part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // was typed by hand; the server knows no such source
  }
};

const Page = ({ dagId }) => {
  const location = useLocation();
  const navigate = useNavigate();
  const chosen = useMemo(() => {
    const match = /\/plugin\/cdc\/([^/]+)\/?$/.exec(location.pathname);
    return match ? named(match[1]) : null;
  }, [location.pathname]);
  const go = (path) => (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    navigate(path);
  };
  const shown = dagId
    ? h(Source, { key: dagId, dagId: sourceDag(dagId) })
    : chosen
      ? h(Source, { key: chosen, dagId: chosen, back: go("/plugin/cdc") })
      : h(Sources, { open: (event, id) => go(`/plugin/cdc/${encodeURIComponent(id)}`)(event) });
  return h(Box, { as: "main", p: { base: 3, md: 5 }, maxW: "100%", minW: 0, height: "100%", overflowY: "auto" }, shown);
};

globalThis.CDC = Page;
