// Makes elements. Texts only ever become text nodes, so nothing in a manifest can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (`onclick`) and children (texts and elements; null is left out). */
export function h(tag, attributes = {}, ...children) {
  return furnished(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes = {}, ...children) {
  return furnished(document.createElementNS(SVG, tag), attributes, children);
}

function furnished(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    // As a property: the attribute is only the value to begin with. A slider cuts it to its limits, so those
    // come before it.
    else if (name === "value") element.value = value;
    else if (name === "checked") element.checked = true;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A name such as NodeResourcesFit, which may be broken before its words. */
export function breakable(name) {
  return name.split(/(?=[A-Z][a-z])/).flatMap((word, index) => (index ? [h("wbr"), word] : [word]));
}

// So many letters at the end of a name are shown before those ahead of them.
const TAIL = 12;
// Names of at most so many letters aren't cut.
const SHORT = 6;

/**
 * A name that is cut where room is short: first its domain, which nodes of a cloud have in common, then its middle, since
 * generated names differ in their ends.
 */
export function ends(name) {
  if (name.length <= SHORT) return name;
  const [, host, domain] = /^([^.]+)(\..+\..+)?/.exec(name) ?? [name, name];
  const known = domain ? host : name;
  const cut = Math.max(Math.floor(known.length / 2), known.length - TAIL);
  return h(
    "span",
    { class: "ends", title: name },
    h("span", {}, known.slice(0, cut)),
    h("span", {}, h("span", {}, known.slice(cut))),
    domain ? h("span", {}, domain) : null,
  );
}

/** Replace all children. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replace all children, and leave the focus where it was, on the control of the same name. */
export function refill(element, ...children) {
  const focused = element.contains(document.activeElement) ? nameOf(document.activeElement) : "";
  fill(element, ...children);
  if (!focused) return;
  const controls = [...element.querySelectorAll("button, input, select, summary")];
  controls.find((each) => nameOf(each) === focused)?.focus({ preventScroll: true });
}

function nameOf(control) {
  return (
    control.getAttribute("aria-label") || control.textContent.trim() || control.labels?.[0]?.textContent || ""
  );
}

export function byId(id) {
  return document.getElementById(id);
}

/** Have a screen reader say this when it has time. */
export function announce(text) {
  byId("said").textContent = text;
}

let labels = 0;

/** A control with its label before it; the control gets an id. */
export function labelled(text, control) {
  control.id ||= `control-${(labels += 1)}`;
  return h("label", { for: control.id }, text, control);
}

/** A select of [value, text] pairs. */
export function choice(pairs, value, onchange) {
  const options = pairs.map(([each, text]) => h("option", { value: each, selected: each === value }, text));
  return h("select", { onchange: (event) => onchange(event.target.value) }, ...options);
}

export function button(text, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, text);
}

/**
 * Tabs over the panels: a list of [name, title]; `panels[name]` are elements. Returns how to choose one; `onchosen(name)` is
 * called when the user does.
 */
export function tabs(list, titles, panels, onchosen = () => {}) {
  const buttons = titles.map(([name, title]) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": panels[name].id,
        onclick: () => choose(name),
      },
      title,
    ),
  );
  function choose(chosen) {
    show(chosen);
    onchosen(chosen);
  }
  function show(chosen) {
    titles.forEach(([name], index) => {
      const is = name === chosen;
      buttons[index].setAttribute("aria-selected", String(is));
      buttons[index].tabIndex = is ? 0 : -1;
      panels[name].hidden = !is;
    });
  }
  list.setAttribute("role", "tablist");
  list.addEventListener("keydown", (event) => {
    const here = buttons.indexOf(document.activeElement);
    const last = buttons.length - 1;
    const next = {
      ArrowRight: here === last ? 0 : here + 1,
      ArrowLeft: here === 0 ? last : here - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined) return;
    buttons[next].focus();
    choose(titles[next][0]);
    event.preventDefault();
  });
  for (const [name] of titles) {
    panels[name].setAttribute("role", "tabpanel");
    panels[name].setAttribute("aria-labelledby", `tab-${name}`);
  }
  fill(list, ...buttons);
  show(titles[0][0]);
  return show;
}
