// The search for nodes, groups and pods by parts of their names.

import { ends, fill, h } from "./dom.js";

const MOST = 30; // results that are listed

/** A search field; `names(kind)` are all names of a kind, `onchosen(kind, name)` is called with the one that is chosen. */
export function searchField(kinds, names, onchosen) {
  let found = [];
  let active = -1;
  const list = h("ul", { id: "found", role: "listbox", "aria-label": "what was found", hidden: true });
  const told = h("p", { class: "unseen", role: "status" });
  const input = h("input", {
    type: "search",
    role: "combobox",
    "aria-label": "find a node, a group or a pod",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": "found",
    placeholder: "Find a node, a group or a pod  ( / )",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => look(),
    onfocus: () => input.value && look(),
    onblur: () => close(),
    onkeydown: (event) => key(event),
  });

  function look() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return close();
    found = [];
    let count = 0;
    for (const kind of kinds) {
      for (const name of names(kind)) {
        const text = name.toLowerCase();
        if (!words.every((word) => text.includes(word))) continue;
        count += 1;
        if (found.length < MOST) found.push({ kind, name });
      }
    }
    told.textContent = `${count} found`;
    const more = count - found.length;
    fill(
      list,
      ...found.map(({ kind, name }, index) =>
        h(
          "li",
          {
            role: "option",
            id: `found-${index}`,
            "aria-label": `${kind} ${name}`,
            "aria-selected": "false",
            // Pressing a mouse button would take the focus, and the list would close before the click.
            onmousedown: (event) => event.preventDefault(),
            onclick: () => choose(index),
          },
          h("span", { class: "soft" }, kind),
          ends(name),
        ),
      ),
      more > 0 || !count
        ? h(
            "li",
            { role: "option", "aria-disabled": "true", "aria-selected": "false", class: "soft" },
            count ? `and ${more.toLocaleString("en")} more` : "nothing has this in its name",
          )
        : null,
    );
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    activate(found.length ? 0 : -1);
  }

  function activate(index) {
    active = index;
    found.forEach((_, each) => list.children[each].setAttribute("aria-selected", String(each === active)));
    if (active < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", `found-${active}`);
    return list.children[active].scrollIntoView({ block: "nearest" });
  }

  function choose(index) {
    const { kind, name } = found[index];
    close();
    input.value = "";
    onchosen(kind, name);
  }

  function close() {
    list.hidden = true;
    found = [];
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && active >= 0 && found.length) choose(active);
    else if (step && found.length) activate((active + step + found.length) % found.length);
    else return;
    event.preventDefault();
  }

  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
  return h("div", { role: "search", class: "search" }, input, list, told);
}
