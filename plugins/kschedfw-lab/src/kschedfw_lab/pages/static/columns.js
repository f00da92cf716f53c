// Columns, as the server sends them: a list of numbers, or one number for all rows.

export const NONE = -1;
export const ABSENT = -2;

/** The number in a row. */
export function at(column, row) {
  return typeof column === "number" ? column : column[row];
}

/** All numbers as an array that can be written to. */
export function expanded(column, length) {
  return typeof column === "number" ? new Float64Array(length).fill(column) : Float64Array.from(column);
}

/** The text in a row of a coded column; null if there is none. */
export function textAt(coded, row) {
  const code = at(coded.codes, row);
  return code === NONE ? null : coded.values[code];
}

/** The index of the last value that is at most `limit`, in an ascending list; -1 if there is none. */
export function lastAtMost(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
