/* The CDC page: one component, written with the React and Chakra that Airflow's own pages put on globalThis.

   Airflow shows it in two places: in the navigation (a list of all sources, and a page for each) and as a tab of a DAG (that source's
   page). There is no build step. Everything that comes from the server is text of React elements, never markup: a name may hold
   anything. The addresses are relative to the document's base, because Airflow may live under a path of its own. */

const { createElement: h, useCallback, useEffect, useId, useMemo, useRef, useState } = globalThis.React;
const { Badge, Box, Button, Flex, Heading, Input, Link, NativeSelect, SimpleGrid, Table, Text } = globalThis.ChakraUI;
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
  failed: ["red", "failed", "Something is wrong, and stays so until a person acts."],
  attention: ["orange", "attention", "Something wants a look."],
  unreachable: ["red", "unreachable", "The store or the source file cannot be read."],
  reading: ["gray", "reading", "The store is being read."],
  catching_up: ["blue", "catching up", "The lake does not have all that was planned or drained."],
  new: ["gray", "new", "No run has planned anything yet."],
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

const Notice = ({ color = "red", title, hint }) =>
  h(Box, { role: color === "red" ? "alert" : "status", borderLeftWidth: "4px", borderColor: `${color}.solid`, bg: `${color}.subtle`, p: 3, my: 2, overflowWrap: "anywhere" },
    h(Text, { fontWeight: "medium" }, title), hint ? h(Quiet, null, hint) : null);

const Shown = ({ answer, children, empty, waiting = "Loading …" }) => {
  if (answer.error && answer.error.reading && !answer.data) return h(Quiet, { role: "status", py: 4 }, answer.error.message);
  if (answer.error && !answer.data) return h(Notice, { title: answer.error.message, hint: answer.error.hint });
  if (!answer.data) return h(Quiet, { role: "status", py: 4 }, waiting);
  return h(Box, { "aria-busy": Boolean(answer.stale), opacity: answer.stale ? 0.6 : 1 },
    answer.error && !answer.error.reading ? h(Notice, { title: `${answer.error.message} What is shown here was read before.`, hint: answer.error.hint }) : null,
    empty ? h(Quiet, { py: 4 }, empty) : children(answer.data));
};

const Section = ({ title, aside, children }) => {
  const id = useId();
  return h(Box, { as: "section", "aria-labelledby": id, mt: 6 },
    h(Flex, { justify: "space-between", align: "baseline", wrap: "wrap", gap: 2, mb: 2 },
      h(Heading, { as: "h3", id, size: "md" }, title), aside), children);
};

const Fact = ({ name, children, hint }) =>
  h(Box, { borderWidth: "1px", borderRadius: "md", p: 3, minW: 0 },
    h(Quiet, { as: "dt", fontSize: "xs" }, name), h(Text, { as: "dd", fontWeight: "medium", overflowWrap: "anywhere", title: hint }, children));

/* A table that scrolls sideways alone, by keyboard too, so that the page never does. */
const Grid = ({ label, columns, rows, sort }) =>
  h(Box, { overflowX: "auto", tabIndex: 0, role: "region", "aria-label": label, _focusVisible: { outline: "2px solid", outlineColor: "colorPalette.focusRing" } },
    h(Table.Root, { size: "sm" },
      h(Table.Header, null, h(Table.Row, null, columns.map(([name, key, end]) =>
        h(Table.ColumnHeader, { key: name, textAlign: end ? "end" : "start", whiteSpace: "nowrap", "aria-sort": sort && key === sort.order ? (sort.descending ? "descending" : "ascending") : undefined },
          sort && key
            ? h(Button, { variant: "plain", size: "xs", px: 0, height: "auto", fontWeight: "semibold", onClick: () => sort.by(key) }, name, key === sort.order ? (sort.descending ? " ▼" : " ▲") : "")
            : name)))),
      h(Table.Body, null, rows.map(({ key, cells }) =>
        h(Table.Row, { key }, cells.map((cell, place) =>
          h(Table.Cell, { key: columns[place][0], textAlign: columns[place][2] ? "end" : "start", verticalAlign: "top", minW: place ? undefined : "12em" }, cell)))))));

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
  const none = answer.data && !answer.data.total && (text || state ? "No source is like this." : "There are no sources yet. A YAML file in the folder of sources makes one; see the documentation, Quickstart.");
  return h(Box, null,
    h(Flex, { justify: "space-between", align: "center", wrap: "wrap", gap: 3, mb: 3 },
      h(Heading, { as: "h2", size: "xl" }, "CDC sources"),
      h(Flex, { gap: 2, wrap: "wrap" }, h(Search, { label: "Search sources", set: search }), h(Choice, { label: "State", value: state, set: (value) => { setState(value); setOffset(0); }, options }))),
    h(Shown, { answer, empty: none }, (data) => h(Box, null,
      h(Grid, {
        label: "Sources",
        columns: [["Source"], ["State"], ["Lag", null, true], ["Binlog kept", null, true], ["Throughput", null, true], ["Last cut"], ["Tables", null, true], ["In flight", null, true], ["Epoch", null, true], ["Server, drained to"]],
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
  const empty = answer.data && !answer.data.points.length && "No merge of the last day is stored.";
  return h(Section, { title: "The last day" }, h(Shown, { answer, empty }, (data) => {
    const points = (value) => data.points.map((point, place) => ({ key: place, at: point.at, value: value(point) }));
    const times = { since: data.since, until: data.until };
    return h(SimpleGrid, { columns: { base: 1, xl: 3 }, gap: 6 },
      h(Day, { title: "Lag at each cut", unit: "age of its last change", word: duration, color: "var(--chakra-colors-orange-solid)", points: points((point) => point.lag_seconds), ...times }),
      h(Day, { title: "Rows merged since the cut before", unit: "rows", word: (value) => number(Math.round(value)), color: "var(--chakra-colors-blue-solid)", steps: true, points: points((point) => point.rows), ...times }),
      h(Box, { minW: 0 }, h(Quiet, { mb: 1 }, "Rows merged by table"), h(Bars, { bars: data.bars, other: data.other })));
  }));
};

/* --- one source ------------------------------------------------------------------------------------------------------- */

const Windows = ({ dagId }) => {
  const [picked, setPicked] = useState(null);
  const [offset, setOffset] = useState(0);
  const answer = useAnswer(address(sourcePath(dagId, "windows")));
  const empty = answer.data && !answer.data.total && "No window was planned yet. The first run plans one.";
  return h(Section, { title: "Windows", aside: answer.data ? h(Flex, { gap: 2, wrap: "wrap" }, Object.entries(answer.data.states).map(([state, count]) =>
    h(Flex, { key: state, gap: 1, align: "center" }, h(StateMark, { of: WINDOW_STATES, state }), h(Quiet, { as: "span" }, count)))) : null },
    h(Shown, { answer, empty }, (data) => {
      const line = [...data.windows].reverse();
      const rows = picked === null ? data.windows.slice(offset, offset + 10) : data.windows.filter((one) => one.id === picked);
      return h(Box, null,
        h(Flex, { role: "group", "aria-label": "Windows, oldest first", gap: "2px", wrap: "wrap", mb: 3 }, line.map((one) =>
          h("button", {
            key: one.id, type: "button", "aria-pressed": picked === one.id,
            "aria-label": `${(WINDOW_STATES[one.state] || ["", one.state])[1]}, ${number(one.rows)} rows, ${one.start} to ${one.stop}`,
            title: `${(WINDOW_STATES[one.state] || ["", one.state])[1]}: ${number(one.rows)} rows, ${one.start} to ${one.stop}`,
            onClick: () => setPicked(picked === one.id ? null : one.id),
            style: { width: 14, height: 26, borderRadius: 3, cursor: "pointer", border: picked === one.id ? "2px solid currentColor" : "none", background: `var(--chakra-colors-${(WINDOW_STATES[one.state] || ["gray"])[0]}-solid)` },
          }))),
        picked === null ? null : h(Button, { size: "xs", variant: "outline", mb: 2, onClick: () => setPicked(null) }, "Show all windows"),
        h(Grid, {
          label: "Windows, latest first",
          columns: [["Window"], ["State"], ["Rows", null, true], ["Bytes", null, true], ["Transactions", null, true], ["Tables", null, true], ["Last change"], ["Acked"], ["Merged"], ["Notes"]],
          rows: rows.map((one) => ({ key: one.id, cells: [
            h(Box, null, h(Mono, { whiteSpace: "nowrap" }, one.start), h("br"), h(Mono, { whiteSpace: "nowrap" }, one.stop), h(Quiet, { fontSize: "xs" }, `epoch ${one.epoch}`)),
            h(StateMark, { of: WINDOW_STATES, state: one.state }), number(one.rows), bytes(one.bytes), number(one.transactions), number(one.tables),
            h(Time, { at: one.last_time, none: "–" }), h(Time, { at: one.acked_at, none: "–" }), h(Time, { at: one.merged_at, none: "–" }),
            h(Box, { fontSize: "xs" }, [
              one.reselected && "re-selected", one.partial_rows && `${number(one.partial_rows)} partial rows`,
              one.statements && `${one.statements} DDL statements`, one.quarantined && `${one.quarantined} tables at fault`,
            ].filter(Boolean).join(", ")),
          ] })),
        }),
        picked === null ? h(Pages, { offset, total: data.windows.length, size: 10, go: setOffset }) : null);
    }));
};

const Verdict = ({ one }) => {
  if (!one) return h(Mark, { color: "gray", title: "Never compared with its source" }, "never");
  const wrong = [[one.missing, "missing"], [one.extra, "extra"], [one.different, "different"], [one.unexamined, "not looked at"]].filter(([count]) => count).map(([count, what]) => `${number(count)} ${what}`).join(", ");
  return h(Box, null, h(Mark, { color: one.clean ? "green" : "red", title: `as of ${one.position}` }, one.clean ? "equal" : "drift"), " ", h(Quiet, { as: "span", fontSize: "xs" }, h(Time, { at: one.at })),
    wrong ? h(Quiet, { fontSize: "xs" }, wrong) : null);
};

const Tables = ({ dagId, backfill }) => {
  const [text, setText] = useState("");
  const [state, setState] = useState("");
  const [offset, setOffset] = useState(0);
  const [sort, setSort] = useState({ order: "table", descending: false });
  const answer = useAnswer(address(sourcePath(dagId, "tables"), { text, state, offset, order: sort.order, descending: sort.descending }));
  const search = useCallback((value) => { setText(value); setOffset(0); }, []);
  const by = (order) => { setSort((before) => ({ order, descending: before.order === order ? !before.descending : order !== "table" })); setOffset(0); };
  const counts = answer.data ? answer.data.counts : {};
  const words = { ...Object.fromEntries(Object.entries(TABLE_STATES).map(([key, value]) => [key, value[1]])), equal: "verified equal", drift: "with drift", never: "never verified" };
  const options = [["", "All tables"], ...Object.keys(words).filter((key) => counts[key] || key === state).map((key) => [key, `${words[key]} (${number(counts[key] || 0)})`])];
  const empty = answer.data && !answer.data.total && (text || state ? "No table is like this." : "No table is in the lake yet. The first merge brings them.");
  return h(Section, { title: "Tables", aside: h(Flex, { gap: 2, wrap: "wrap" }, h(Search, { label: "Search tables", set: search }), h(Choice, { label: "Table state", value: state, set: (value) => { setState(value); setOffset(0); }, options })) },
    h(Shown, { answer, empty }, (data) => h(Box, null,
      h(Grid, {
        label: "Tables", sort: { ...sort, by },
        columns: [["Table", "table"], ["State"], ["Rows", "rows", true], ["Last change", "last_change"], ["Verified", "verified"], ["Mode"], ["Schemas", null, true], ["Lake table"], ...(backfill ? [["Do"]] : [])],
        rows: data.tables.map((one) => ({ key: `${one.table} ${one.lake_table}`, cells: [
          h(Mono, { fontSize: "sm" }, one.table),
          h(Box, { maxW: "28em", overflowWrap: "anywhere" }, h(StateMark, { of: TABLE_STATES, state: one.state }), one.note ? h(Quiet, { fontSize: "xs" }, one.note) : null, one.as_of ? h(Quiet, { fontSize: "xs" }, `as of ${one.as_of}`) : null),
          h("span", { title: "at the last comparison with the source" }, number(one.rows)),
          h(Time, { at: one.last_change, none: "–" }), h(Verdict, { one: one.verified }), one.mode || "–", number(one.schema_versions), h(Mono, null, one.lake_table || "–"),
          ...(backfill ? [h(Button, { size: "xs", variant: "outline", "aria-label": `Backfill ${one.table}`, onClick: () => backfill(one.table) }, "Backfill")] : []),
        ] })),
      }),
      h(Pages, { offset, total: data.total, size: PAGE, go: setOffset }))));
};

const Cuts = ({ dagId }) => {
  const [offset, setOffset] = useState(0);
  const answer = useAnswer(address(sourcePath(dagId, "cuts"), { offset, limit: 10 }));
  const empty = answer.data && !answer.data.total && "No cut was published yet. The first merge publishes one.";
  return h(Section, { title: "Cuts" }, h(Shown, { answer, empty }, (data) => h(Box, null,
    h(Grid, {
      label: "Cuts, latest first",
      columns: [["Position"], ["Epoch", null, true], ["Last commit"], ["Published"], ["Tables", null, true], ["Changes", null, true], ["Notes"]],
      rows: data.cuts.map((one) => ({ key: one.merge_id, cells: [
        h(Mono, { whiteSpace: "nowrap", title: one.merge_id }, one.position), one.epoch, clock(one.event_time), h(Time, { at: one.at }), number(one.tables), number(one.changes),
        [one.reselected && `${one.reselected} tables re-selected`, one.quarantined && `${one.quarantined} quarantined`].filter(Boolean).join(", "),
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
      columns: [["When"], ["How"], ["From"], ["To"], ["By"], ["Why"]],
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
  run: ["Run now", "Plan, drain and merge what is there."],
  verify: ["Verify", "Compare the tables that verify.tables names with the source."],
  backfill: ["Backfill", "Merge archived batches once more."],
};

const Field = ({ label, ...rest }) => {
  const id = useId();
  return h(Box, null, h("label", { htmlFor: id }, h(Quiet, { as: "span" }, label)), h(Input, { id, size: "sm", ...rest }));
};

const BackfillForm = ({ tables, send, close }) => {
  const [values, setValues] = useState({ tables, from: "", to: "", into: "live" });
  const first = useRef(null);
  useEffect(() => { if (first.current) first.current.focus(); }, []);
  const set = (name) => (event) => setValues((before) => ({ ...before, [name]: event.target.value }));
  const utc = (text) => (text ? `${text.length === 16 ? `${text}:00` : text}Z` : null);
  const submit = (event) => {
    event.preventDefault();
    send({ tables: values.tables.split(/\n/).map((one) => one.trim()).filter(Boolean), from: utc(values.from), to: utc(values.to), into: values.into });
  };
  return h(Box, { as: "form", "aria-label": "Backfill", onSubmit: submit, onKeyDown: (event) => { if (event.key === "Escape") close(); }, borderWidth: "1px", borderRadius: "md", p: 3, my: 3, maxW: "40em" },
    h(Text, { mb: 2 }, "Merges the stored batches of a time once more. The source is not asked, and no cursor moves."),
    h(Flex, { direction: "column", gap: 2 },
      h(Field, { ref: first, label: "Tables (database.table or a pattern; empty for all)", value: values.tables, onChange: set("tables") }),
      h(Field, { label: "From (UTC; empty for the beginning)", type: "datetime-local", value: values.from, onChange: set("from") }),
      h(Field, { label: "To (UTC; empty for the end)", type: "datetime-local", value: values.to, onChange: set("to") }),
      h(Choice, { label: "Into", value: values.into, set: (into) => setValues((before) => ({ ...before, into })), options: [["live", "into the lake tables"], ["copy", "into tables beside them"]] }),
      h(Flex, { gap: 2 }, h(Button, { type: "submit", size: "sm" }, "Start the backfill"), h(Button, { size: "sm", variant: "outline", onClick: close }, "Cancel"))));
};

const useActions = (dagId) => {
  const answer = useAnswer(address(sourcePath(dagId, "actions")), 60_000);
  const [form, setForm] = useState(null);
  const [done, setDone] = useState(null);
  const [busy, setBusy] = useState(false);
  const found = answer.data ? answer.data.actions : [];
  const send = async (action, conf) => {
    setBusy(true);
    setDone(null);
    try {
      const run = await trigger(action.dag_id, conf);
      setDone({ dagId: action.dag_id, runId: run.dag_run_id });
      setForm(null);
    } catch (error) {
      setDone({ error });
    }
    setBusy(false);
  };
  const act = (action) => (action.kind === "backfill" ? setForm({ tables: "" }) : send(action, {}));
  const backfill = found.find((one) => one.kind === "backfill" && one.allowed);
  const buttons = h(Flex, { gap: 2, wrap: "wrap", role: "group", "aria-label": "Actions" }, found.map((one) =>
    h(Button, { key: one.kind, size: "sm", variant: "outline", disabled: !one.allowed || busy, title: one.allowed ? ACTIONS[one.kind][1] : "You may not start runs of this DAG.", onClick: () => act(one) }, ACTIONS[one.kind][0])));
  const below = h(Box, { "aria-live": "polite" },
    form && backfill ? h(BackfillForm, { key: form.tables, tables: form.tables, send: (conf) => send(backfill, conf), close: () => setForm(null) }) : null,
    done && done.error ? h(Notice, { title: done.error.message, hint: done.error.hint }) : null,
    done && done.runId ? h(Box, { borderLeftWidth: "4px", borderColor: "green.solid", bg: "green.subtle", p: 3, my: 2 },
      h(Text, { as: "span" }, "Started: "), h(Link, { href: address(`dags/${encodeURIComponent(done.dagId)}/runs/${encodeURIComponent(done.runId)}`), overflowWrap: "anywhere" }, done.runId)) : null);
  return { buttons, below, backfill: backfill ? (table) => { setForm({ tables: table }); setDone(null); } : null };
};

const Findings = ({ data }) => (data.findings_total
  ? h(Box, { as: "section", "aria-label": "Findings", mt: 3 }, data.findings.map((one, place) => h(Notice, { key: place, color: one.level === "error" ? "red" : "orange", title: one.what, hint: one.hint })),
      data.findings_total > data.findings.length ? h(Quiet, null, `and ${number(data.findings_total - data.findings.length)} more; see cdc status ${data.source}`) : null)
  : null);

const Epochs = ({ epochs }) => (epochs.length
  ? h(Section, { title: "Epochs" }, h(Grid, { label: "Epochs, latest first", columns: [["Epoch"], ["Since"], ["How"], ["By"], ["Why"], ["From"], ["To"]], rows: epochs.map((one) => ({ key: one.epoch, cells: [
      one.epoch, clock(one.at), one.kind, h(Mono, null, one.by), h(Box, { overflowWrap: "anywhere" }, one.why), h(Mono, null, one.previous_end), h(Mono, null, one.new_start)] })) }))
  : null);

const Source = ({ dagId, back }) => {
  const answer = useAnswer(address(sourcePath(dagId)));
  const { buttons, below, backfill } = useActions(dagId);
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
        h(Fact, { name: "Lag", hint: "Age of the oldest change that is not in the lake, as far as the store tells" }, duration(data.lag_seconds), data.lag_bytes === null ? "" : `, ${bytes(data.lag_bytes)}`),
        h(Fact, { name: "Binlog kept for", hint: `Until the server may purge what is drained next, as a plan saw ${ago(data.server_seen_at)}` }, h(Retention, { seconds: data.retention_left_seconds })),
        h(Fact, { name: "Throughput of the last merges" }, rate(data.rows_per_second)),
        h(Fact, { name: "Last cut" }, h(Time, { at: data.cut_at })),
        h(Fact, { name: "In flight" }, `${data.windows_in_flight} windows, ${data.snapshots} snapshots`),
        h(Fact, { name: "Drained to" }, data.drain ? h(Mono, { fontSize: "sm", overflowWrap: "anywhere" }, data.drain.position) : "not started"),
        h(Fact, { name: "Merged to" }, data.lake ? h(Mono, { fontSize: "sm", overflowWrap: "anywhere" }, data.lake.position) : "not started"),
        h(Fact, { name: "Epoch" }, data.drain ? data.drain.epoch : "–"),
        h(Fact, { name: "Server" }, h(Mono, { fontSize: "sm", overflowWrap: "anywhere" }, data.drain ? data.drain.server : data.server))),
      h(Pictures, { dagId }), h(Windows, { dagId }), h(Tables, { dagId, backfill }), h(Cuts, { dagId }), h(Moves, { dagId }), h(Epochs, { epochs: data.epochs }),
      h(Quiet, { mt: 6, fontSize: "xs" }, "Read from the store ", h(Time, { at: data.read_at }), ". The source database is not asked."))));
};

/* --- the component ---------------------------------------------------------------------------------------------------- */

/* Only the main DAG of a source is named like it; those for verify and backfill have a dot. */
const sourceDag = (dagId) => dagId.replace(/\.(verify|backfill)$/, "");

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
