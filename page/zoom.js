// Zooming a chart with keys: + and - around its middle, arrows to the sides, 0 back to everything.

/**
 * What a chart shows after a key: [from, to], null for everything, or undefined if the key does not zoom.
 * @param {string} key as KeyboardEvent has it
 * @param {number[]} ends the least and the greatest x of the chart
 * @param {number[] | null} zoom what the chart shows now; null for everything
 * @returns {number[] | null | undefined}
 */
export function zoomed(key, ends, zoom) {
  const [from, to] = zoom ?? ends,
    width = to - from;
  if (key === "+" || key === "=") return [from + width / 4, to - width / 4];
  if (key === "0") return null;
  if (key === "-") {
    const wider = [Math.max(ends[0], from - width / 2), Math.min(ends[1], to + width / 2)];
    return wider[0] <= ends[0] && wider[1] >= ends[1] ? null : wider;
  }
  if (key !== "ArrowLeft" && key !== "ArrowRight") return undefined;
  const by = key === "ArrowLeft" ? Math.max(-width / 4, ends[0] - from) : Math.min(width / 4, ends[1] - to);
  return zoom && [from + by, to + by];
}
