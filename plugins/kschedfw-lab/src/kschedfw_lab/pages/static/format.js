// Amounts and times as people write them.

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** An amount of a resource in its unit: CPU in millicores, memory and storage in bytes, else a count. */
export function amount(resource, value) {
  if (resource === "cpu")
    return value % 1000 && value < 10000 ? `${value}m` : (value / 1000).toLocaleString("en");
  if (resource === "memory" || resource.endsWith("storage") || resource.startsWith("hugepages-"))
    return bytes(value);
  return value.toLocaleString("en");
}

function bytes(value) {
  let power = 0;
  while (Math.abs(value) >= 1024 && power < BINARY.length - 1) {
    value /= 1024;
    power += 1;
  }
  return `${Number(value.toFixed(value < 10 ? 1 : 0))}${BINARY[power]}`;
}

export function percent(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(share < 0.1 && share > 0 ? 1 : 0)}%` : "–";
}

export function count(number, noun, plural = `${noun}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

/** Seconds as a duration: 1:02:03, or 4.5 s. */
export function duration(seconds) {
  if (seconds < 60) return `${Number(seconds.toFixed(2))} s`;
  const whole = Math.floor(seconds);
  const two = (number) => String(number).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}
