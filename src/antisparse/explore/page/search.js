// The search box: a combobox over the items, by keys or by pointer.

function searchBox(source, choose, fail) {
  const input = document.getElementById("find"), list = document.getElementById("options"), said = document.getElementById("matches");
  let shown = [], active = -1, turn = 0;

  function close() {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function activate(at) {
    active = at;
    Array.from(list.children).forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    if (at < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({block: "nearest"});
  }
  async function open() {
    const mine = ++turn;
    let found;
    try {
      found = await source.find(input.value, 20);
    } catch (error) {
      return fail(error);
    }
    if (mine !== turn) return;  // more was typed meanwhile
    shown = found.items;
    list.replaceChildren(...shown.map((item, i) => {
      const option = element("li", {id: "option-" + i, role: "option"}), text = element("div", {class: "clamp", dir: "auto"}, item.text);
      option.append(text);
      if (item.key !== item.text) option.append(element("div", {class: "key", dir: "auto"}, item.key));
      option.addEventListener("mousedown", event => { event.preventDefault(); pick(i); });
      return option;
    }));
    said.textContent = found.count === undefined ? `${shown.length} items` : `${found.count} items match`;
    list.hidden = shown.length === 0;
    input.setAttribute("aria-expanded", String(shown.length > 0));
    activate(-1);
  }
  function pick(at) {
    turn++;
    input.value = "";
    close();
    choose(shown[at]);
  }
  input.addEventListener("input", open);
  input.addEventListener("focus", open);
  input.addEventListener("blur", () => { turn++; close(); });
  input.addEventListener("keydown", async event => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) await open();
      if (shown.length) activate((active + (event.key === "ArrowDown" ? 1 : shown.length - (active < 0 ? 0 : 1))) % shown.length);
    } else if (event.key === "Enter" && !list.hidden && shown.length) {
      event.preventDefault();
      pick(Math.max(active, 0));
    } else if (event.key === "Escape") {
      input.value = "";
      close();
    }
  });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    }
  });
}
