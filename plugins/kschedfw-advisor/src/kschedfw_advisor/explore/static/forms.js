// Forms for values of any shape, such as the arguments of a plugin.

import { button, choice, fill, h } from "./dom.js";

let names = 0;

/**
 * A control for a value of this shape (see Shape in kschedfw_advisor/explore/forms.py): {element, read()}. What `read` returns is
 * undefined where the value is left out; it throws an Error where a text isn't what it should be.
 */
export function control(shape, value, label) {
  const make = { object: group, list: series, choice: select, boolean: box, json: raw }[shape.kind] ?? field;
  return make(shape, value, label);
}

function row(label, input) {
  input.id = `field-${(names += 1)}`;
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input);
}

function field(shape, value, label) {
  const isNumber = shape.kind === "integer" || shape.kind === "number";
  const input = h("input", {
    type: isNumber ? "number" : "text",
    step: shape.kind === "integer" ? 1 : "any",
    value: value ?? "",
  });
  return {
    element: row(label, input),
    read() {
      if (input.value === "" && !input.validity.badInput) return undefined;
      if (isNumber && (input.validity.badInput || Number.isNaN(Number(input.value))))
        throw new Error(`${label}: not a number`);
      return isNumber ? Number(input.value) : input.value;
    },
  };
}

function box(_, value, label) {
  const input = h("input", { type: "checkbox", checked: value === true });
  return { element: row(label, input), read: () => input.checked };
}

function select(shape, value, label) {
  const pairs = [["", "(default)"], ...shape.choices.map((each) => [each, each])];
  const input = choice(pairs, value ?? "", () => {});
  return { element: row(label, input), read: () => input.value || undefined };
}

function raw(_, value, label) {
  const input = h("input", {
    type: "text",
    value: value === undefined ? "" : JSON.stringify(value),
    placeholder: "JSON",
  });
  return {
    element: row(label, input),
    read() {
      if (!input.value.trim()) return undefined;
      try {
        return JSON.parse(input.value);
      } catch (error) {
        throw new Error(`${label}: ${error.message}`);
      }
    },
  };
}

function group(shape, value, label) {
  const parts = (shape.fields ?? []).map(([name, inner]) => [name, control(inner, value?.[name], name)]);
  return {
    element: h("fieldset", {}, h("legend", {}, label), ...parts.map(([, part]) => part.element)),
    read() {
      const entries = parts
        .map(([name, part]) => [name, part.read()])
        .filter(([, each]) => each !== undefined && !isEmpty(each));
      return entries.length ? Object.fromEntries(entries) : undefined;
    },
  };
}

function series(shape, value, label) {
  const parts = [];
  const list = h("div", {});
  const show = () =>
    fill(
      list,
      ...parts.map((part, index) =>
        h(
          "div",
          {},
          part.element,
          button(
            "Remove",
            () => {
              parts.splice(index, 1);
              show();
            },
            { "aria-label": `remove ${label} ${index + 1}` },
          ),
        ),
      ),
    );
  const add = (each) => parts.push(control(shape.item, each, `${label} ${parts.length + 1}`));
  (value ?? []).forEach(add);
  show();
  return {
    element: h(
      "fieldset",
      {},
      h("legend", {}, label),
      list,
      button(
        "Add",
        () => {
          add(undefined);
          show();
        },
        { "aria-label": `add to ${label}` },
      ),
    ),
    read: () => parts.map((part) => part.read()).filter((each) => each !== undefined),
  };
}

function isEmpty(value) {
  return Array.isArray(value) && !value.length;
}
