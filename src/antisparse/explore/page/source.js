// Where answers come from: what lies in this file, or the service that the page came from. Both give the same shape:
// {query: {id, code, original, rebuilt, error}, columns: {method: {ids, distances} or {why}}, items: {id: {key, text, code}}}

function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}
const floatsOf = text => new Float32Array(bytesOf(text).buffer);
const hex = bytes => Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");

function fileSource(data) {
  const k = 10, {id: ids, key: keys, text: texts} = data.items;
  const searched = texts.slice(0, data.asked).map((text, i) => (keys[i] + " " + text).toLowerCase());
  const readColumn = column => column.why !== undefined ? column
    : {places: new Int32Array(bytesOf(column.places).buffer), distances: floatsOf(column.distances)};
  const readVectors = held => held && {steps: new Int8Array(bytesOf(held.steps).buffer), scales: floatsOf(held.scales)};
  const truth = readColumn(data.truth), original = readVectors(data.original);
  const sizes = data.sizes.map(size => ({
    codes: bytesOf(size.codes), asked: bytesOf(size.asked_codes), rebuilt: readVectors(size.rebuilt), bytes: size.bytes,
    errors: size.errors && floatsOf(size.errors),
    columns: Object.fromEntries(Object.entries(size.columns).map(([name, column]) => [name, readColumn(column)])),
  }));
  const vectorAt = (held, at) => held && Array.from(
    held.steps.subarray(at * data.shown_dimensions, (at + 1) * data.shown_dimensions), step => step * held.scales[at]);
  const codeAt = (codes, at, bytes) => hex(codes.subarray(at * bytes, (at + 1) * bytes));
  const places = (column, at) => column.places ? Array.from(column.places.subarray(at * k, (at + 1) * k)).filter(p => p >= 0) : null;

  function listed(column, at, seen) {
    if (column.why !== undefined) return column;
    const there = places(column, at);
    there.forEach(place => seen.add(place));
    return {ids: there.map(place => ids[place]), distances: Array.from(column.distances.subarray(at * k, at * k + there.length))};
  }
  const label = place => ({id: ids[place], key: keys[place], text: texts[place]});
  // How many of the true neighbours of an item the best search of a size has lost.
  function lost(at, size, method = sizes[size].columns.reconstruction.places ? "reconstruction" : "hamming") {
    const nearest = places(truth, at), found = places(sizes[size].columns[method], at);
    return nearest && found ? nearest.filter(place => !found.includes(place)).length : 0;
  }

  return {
    live: false, info: data, model: false,
    async ask(what, size) {
      const at = ids.indexOf(what.id), held = sizes[size], seen = new Set([at]), columns = {};
      for (const [name, column] of Object.entries(held.columns)) columns[name] = listed(column, at, seen);
      columns.exact = listed(truth, at, seen);
      const items = {};
      for (const place of seen) items[ids[place]] = {...label(place), code: codeAt(held.codes, place, held.bytes)};
      const query = {id: ids[at], code: codeAt(held.asked, at, held.bytes), original: vectorAt(original, at),
        rebuilt: vectorAt(held.rebuilt, at), error: held.errors && original ? held.errors[at] : null};
      return {query, columns, items};
    },
    async find(words, most) {
      const wanted = words.toLowerCase().split(/\s+/).filter(Boolean), start = words.trim().toLowerCase(), first = [], rest = [];
      for (let i = 0; i < searched.length; i++) {
        if (!wanted.every(word => searched[i].includes(word))) continue;
        const begins = keys[i].toLowerCase() === start || texts[i].toLowerCase().startsWith(start);
        (begins ? first : rest).push(i);
      }
      return {count: first.length + rest.length, items: first.concat(rest).slice(0, most).map(label)};
    },
    canAsk: id => { const at = ids.indexOf(id); return at >= 0 && at < data.asked; },
    any: async () => label(Math.floor(Math.random() * data.asked)),
    hardest(size, turn) {
      const places = Array.from({length: data.asked}, (_, i) => i);
      const by = places.map(at => lost(at, size));
      places.sort((a, b) => by[b] - by[a] || a - b);
      return label(places[turn % Math.min(places.length, 20)]);
    },
    // Where to begin: at an item that shows what it is about, of whose neighbours one search lost more than another.
    start(size) {
      const order = Array.from({length: data.asked}, (_, i) => (i + Math.floor(data.asked / 3)) % data.asked);
      const tells = at => { const missing = lost(at, size); return missing >= 1 && missing <= 3 && lost(at, size, "hamming") > missing + 1; };
      const some = at => lost(at, size) >= 2 && lost(at, size) <= 4;
      return label(order.find(tells) ?? order.find(some) ?? 0);
    },
  };
}

// A service. The token is in this function's memory, and nowhere else.
async function liveSource(askToken) {
  let token = "";
  async function request(path, body) {
    for (;;) {
      const headers = token ? {authorization: "Bearer " + token} : {};
      if (body) headers["content-type"] = "application/json";
      const response = await fetch(path, {method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store"});
      if (response.status === 401) {
        token = await askToken(token !== "");
        continue;
      }
      const said = await response.json();
      if (!response.ok) throw new Error(said.error ? said.error.message : "the service answered " + response.status);
      return said;
    }
  }
  const info = await request("explore");
  const find = (words, most) => request("explore/items?" + new URLSearchParams({words, most}));
  return {
    live: true, info, model: info.model, find,
    ask: (what, size) => request("explore", {...what, size: info.sizes[size].bytes}),
    canAsk: () => true,
    any: () => request("explore/items?" + new URLSearchParams({any: true})).then(found => found.items[0]),
    hardest: null,
    start: async () => (await find("", 1)).items[0],
  };
}
