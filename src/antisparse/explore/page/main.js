// The page: what is asked, what was answered, and what of it is looked at.

const byId = id => document.getElementById(id);
let source = null, asked = null, answer = null, size = 0, turn = 0, compared = null, hardest = 0;

function fail(error) {
  byId("notice").textContent = error.message;
  byId("notice").hidden = false;
}

function askToken(wrong) {
  const form = byId("token-form");
  form.hidden = false;
  if (wrong) fail(new Error("That token is none that the service knows."));
  byId("token").focus();
  return new Promise(done => form.addEventListener("submit", event => {
    event.preventDefault();
    form.hidden = true;
    byId("notice").hidden = true;
    const given = byId("token").value.trim();
    byId("token").value = "";
    done(given);
  }, {once: true}));
}

const withCommas = number => number.toLocaleString("en-US");
const counted = (count, unit) => `${withCommas(count)} ${unit}${count === 1 ? "" : "s"}`;

function showCost() {
  const {info} = source, now = info.sizes[size], floats = 4 * info.dimensions;
  byId("bytes").textContent = now.bytes;
  byId("bytes-unit").textContent = now.bytes === 1 ? "byte a vector" : "bytes a vector";
  byId("share").textContent = `of ${withCommas(floats)} as float32: ${Number((floats / now.bytes).toPrecision(3))} times smaller`;
  byId("made-of").textContent = `Made of: ${now.code}.`;
  const several = info.sizes.length > 1, slider = byId("slider");
  byId("slider-box").hidden = !several;
  slider.max = info.sizes.length - 1;
  slider.value = size;
  slider.setAttribute("aria-valuetext", counted(now.bytes, "byte"));
  byId("ticks").replaceChildren(...info.sizes.map(one => element("span", {}, String(one.bytes))));
  showRecall(now, several);
}

const MEANINGS = {"1@1": "the true nearest is found first", "1@10": "it is among the first ten", "10@10": "the part of the true ten among the first ten"};

function showRecall(now, several) {
  const {info} = source, box = byId("recall"), some = Object.values(now.recall || {}).find(Boolean);
  if (!some) {
    box.replaceChildren(element("p", {class: "quiet"}, info.exact ? "There are too few items to measure recall."
      : "How much of the truth is found (recall) can be measured where the original vectors are at hand: --vectors FILE."));
    return;
  }
  const measures = Object.keys(some), rows = [];
  for (const method of ["hamming", "asymmetric", "reconstruction"]) {
    const values = now.recall[method], row = element("tr", {}, element("th", {scope: "row"}, SEARCHES[method][0]));
    for (const measure of measures) {
      const cell = element("td", {});
      if (values) {
        const bar = element("span", {class: "bar"}, element("span", {}));
        bar.firstChild.style.width = 100 * values[measure] + "%";
        cell.append(values[measure].toFixed(3), bar);
      } else cell.append("–");
      row.append(cell);
    }
    rows.push(row);
  }
  const meanings = measures.map(measure => `${measure}: ${MEANINGS[measure]}`).join("; ");
  const caption = `Recall, of ${counted(info.asked, "item")} asked for their neighbours among all others. ${meanings}.`;
  const table = element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, element("td", {}), ...measures.map(measure => element("th", {scope: "col"}, measure)))), element("tbody", {}, ...rows));
  box.replaceChildren(table);
  const last = measures[measures.length - 1];
  if (several) box.append(element("figure", {class: "plot"}, element("figcaption", {}, `${last} by bytes`), drawRecall(info.sizes, last, size)));
}

function unitWords(code, other, parts) {
  const found = differing(code, other, parts), alone = found.filter(({part}) => part.count === 1);
  const many = found.filter(({part}) => part.count > 1).map(({part, differ}) => `${differ} of ${part.count} ${part.name}`);
  const words = many.concat(alone.filter(one => one.differ).map(({part}) => "the " + part.name));
  return words.join(" and ") + (words.length > 1 || !many.length || !/^1 of/.test(words[0]) ? " differ" : " differs");
}

function compare(id) {
  compared = id;
  const item = id && answer.items[id], parts = source.info.sizes[size].parts;
  for (const one of document.querySelectorAll(".entry")) one.classList.toggle("chosen", one.dataset.id === id);
  byId("compared-code").replaceChildren();
  byId("ask-compared").hidden = !item || !source.canAsk(id) || id === answer.query.id;
  if (!item) return;
  const words = unitWords(item.code, answer.query.code, parts);
  byId("compared-text").replaceChildren("Compared with ", element("strong", {}, item.text.length > 160 ? item.text.slice(0, 160) + "…" : item.text));
  byId("compared-code").append(element("p", {}, words[0].toUpperCase() + words.slice(1) + " from the query's, and are lit."), drawCode(item.code, parts, answer.query.code, "The code compared: " + words));
}

function showQuery() {
  const {query, items} = answer, parts = source.info.sizes[size].parts, now = source.info.sizes[size];
  const item = query.id !== null ? items[query.id] : null;
  byId("query-text").textContent = item ? item.text || "(no text)" : asked.text !== undefined ? asked.text : `A vector of ${counted(asked.vector.length, "number")}`;
  const note = item && item.key !== item.text && item.text !== "item " + item.key ? `Key ${item.key}. ` : "";
  byId("query-note").textContent = note + (item && !query.original ? "Its original vector is not at hand: what its code rebuilds is asked." : "");
  byId("query-code").replaceChildren(element("p", {}, `Its code: ${now.code}.`), drawCode(query.code, parts, null, `The code of the query, ${counted(now.bytes, "byte")}: ${query.code}`));
  const plot = byId("plot");
  plot.replaceChildren(element("h2", {}, "Original against rebuilt"));
  if (!query.rebuilt) return plot.append(element("p", {class: "quiet"}, "These codes rebuild no vectors."));
  const part = source.info.shown_dimensions < source.info.used_dimensions ? ` The first ${source.info.shown_dimensions} of ${source.info.used_dimensions} coordinates are drawn.` : "";
  const error = query.error !== null ? `Squared error over squared norm: ${query.error.toFixed(3)}.` : "The original is not at hand.";
  const caption = element("figcaption", {});
  const dot = name => { const made = element("span", {class: "dot"}); made.style.background = `var(--${name})`; return made; };
  if (query.original) caption.append(dot("kept"), "original ");
  caption.append(dot("lost"), "rebuilt from the code. ", query.original ? "The square has each coordinate, original across and rebuilt up; on its diagonal nothing is lost. " : "", error, part);
  const pictures = element("div", {class: "pictures"}, drawVectors(query.original, query.rebuilt, `The ${query.original ? "original vector and the " : ""}vector that the code rebuilds. ${error}`));
  if (query.original) pictures.append(drawScatter(query.original, query.rebuilt));
  plot.append(pictures, caption);
}

function show() {
  const parts = source.info.sizes[size].parts, kept = compared;
  showCost();
  showQuery();
  byId("columns").replaceChildren(...Object.keys(SEARCHES).map(method => columnOf(method, answer, parts)));
  const first = document.querySelector(".entry.false") || document.querySelector(".entry");
  compared = null;
  byId("compared-text").textContent = "Choose a neighbour below to compare its code.";
  compare(kept && answer.items[kept] && kept !== answer.query.id ? kept : first ? first.dataset.id : null);
  byId("status").textContent = "Found the neighbours of: " + byId("query-text").textContent.slice(0, 100);
}

async function ask(what, keep) {
  const mine = ++turn;
  try {
    const got = await source.ask(what, size);
    if (mine !== turn) return;
    byId("notice").hidden = true;
    [asked, answer, compared] = [what, got, keep ? compared : null];
    show();
  } catch (error) {
    if (mine === turn) fail(error);
  }
}

const askItem = item => item && ask({id: item.id});

function vectorOf(text) {
  const words = text.split(/[\s,;[\]()]+/).filter(Boolean), numbers = words.map(Number);
  const bad = words.find((_, i) => !Number.isFinite(numbers[i]));
  if (bad !== undefined) throw new Error(`“${bad.slice(0, 30)}” is not a number.`);
  const {dimensions, used_dimensions: used} = source.info;
  if (numbers.length !== dimensions && numbers.length !== used) throw new Error(`There are ${counted(numbers.length, "number")} here; vectors of this index have ${dimensions}.`);
  return numbers;
}

function listen() {
  searchBox(source, askItem, fail);
  byId("any").addEventListener("click", () => source.any().then(askItem, fail));
  byId("hardest").hidden = !source.hardest || !source.info.exact;
  byId("hardest").addEventListener("click", () => askItem(source.hardest(size, hardest++)));
  byId("slider").addEventListener("input", event => { size = Number(event.target.value); if (asked) ask(asked, true); else showCost(); });
  byId("kinds").addEventListener("change", event => {
    for (const kind of ["item", "text", "vector"]) byId("by-" + kind).hidden = kind !== event.target.value;
  });
  byId("by-text").addEventListener("submit", event => { event.preventDefault(); ask({text: byId("text").value}); });
  byId("by-vector").addEventListener("submit", event => {
    event.preventDefault();
    try {
      ask({vector: vectorOf(byId("vector").value)});
    } catch (error) {
      fail(error);
    }
  });
  byId("ask-compared").addEventListener("click", () => ask({id: compared}));
  const columns = byId("columns");
  columns.addEventListener("keydown", moveByKeys);
  columns.addEventListener("focusin", event => { const one = event.target.closest(".entry"); if (one && one.matches(":focus-visible")) compare(one.dataset.id); });
  columns.addEventListener("click", event => {
    const one = event.target.closest(".entry");
    if (!one) return;
    const again = event.detail === 0 && one.classList.contains("chosen");  // by keys, on the one that is compared already
    if (again && source.canAsk(one.dataset.id)) {
      ask({id: one.dataset.id}).then(() => { const first = document.querySelector(".entry"); if (first) first.focus(); });
    } else compare(one.dataset.id);
  });
}

async function begin() {
  const held = byId("data");
  source = held ? fileSource(JSON.parse(held.textContent)) : await liveSource(askToken);
  const {info} = source;
  size = info.start;
  document.title = info.name + " – antisparse explorer";
  byId("name").textContent = info.name;
  const metric = {l2: "squared Euclidean distance", cosine: "cosine", ip: "inner product"}[info.metric];
  const held_ = !source.live && info.asked < info.vectors ? `; ${withCommas(info.asked)} of them can be asked here` : "";
  byId("facts").textContent = `${counted(info.vectors, "item")} of ${counted(info.dimensions, "dimension")}, ${metric}${held_}`;
  byId("kinds").hidden = !source.live;
  byId("kind-text").hidden = !source.model;
  byId("file-note").hidden = source.live;
  byId("wanted").textContent = info.dimensions;
  listen();
  showCost();
  byId("main").hidden = false;  // before anything is asked: an item may have nothing to ask with, and a vector be pasted
  const first = await source.start(size);
  if (first) return ask({id: first.id});
  fail(new Error("The index is empty."));
}

begin().catch(fail);
