"use strict";
// Draws the tables of the page's figures, and shows the rows of a cell. It computes places, no values.

const MARGIN = { top: 22, right: 24, bottom: 38, left: 58 };
const HEIGHT = 250;
const COLOURS = 4;

function read(figure) {
  const table = figure.querySelector("table");
  const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
  const points = (column) => [...table.tBodies[0].rows].filter((row) => row.cells[column].textContent).map((row) => {
    const [x, cell] = [row.cells[0].textContent, row.cells[column]];
    const data = cell.querySelector("data");
    const bounds = data?.dataset.low === undefined ? null : [Number(data.dataset.low), Number(data.dataset.high)];
    return { x: figure.dataset.kind === "bar" ? x : Number(x), y: Number(data ? data.value : cell.textContent), bounds, told: `${x}: ${cell.textContent}` };
  });
  return names.map((name, n) => ({ name, colour: `c${n % COLOURS}`, points: points(n + 1) }));
}

// -- scales and axes

function scales(of, all, width) {
  const ys = all.flatMap((point) => [point.y, ...(point.bounds ?? [])]);
  const xs = all.map((point) => point.x);
  let [low, high] = d3.extent(ys);
  if ("zero" in of) low = Math.min(0, low);
  if (low === high) [low, high] = low ? [low - Math.abs(low) / 2, low + Math.abs(low) / 2] : [0, 1];
  const range = [HEIGHT - MARGIN.bottom, MARGIN.top];
  const across = [MARGIN.left, width - MARGIN.right];
  const y = ("decades" in of ? d3.scaleLog([low, high], range) : d3.scaleLinear([low, high], range)).nice(5);
  if ("share" in of) y.domain([Math.max(y.domain()[0], Math.min(0, low)), Math.min(y.domain()[1], 1)]);
  if (of.kind === "bar") return [d3.scaleBand([...new Set(xs)], across).padding(0.2), y];
  if ("share" in of && "diagonal" in of) return [d3.scaleLinear([0, 1], across), y.domain([0, 1])];
  const [first, last] = d3.extent(xs);
  return [d3.scaleLinear(first === last ? [first - 1, last + 1] : [of.kind === "line" ? Math.min(0, first) : first, last], across), y];
}

const short = (number) => (Math.abs(number) >= 10000 ? d3.format("~s")(number) : d3.format(",~r")(Number(number.toPrecision(6))));

const percent = (digits) => (share) => `${(100 * share).toFixed(digits)} %`;

function axes(svg, of, [x, y], width) {
  const digits = Math.max(0, Math.ceil(-2 - Math.log10(d3.tickStep(...y.domain(), 5)) - 1e-9));
  const fine = "share" in of ? percent(digits) : short;
  const left = d3.axisLeft(y).ticks(5, "decades" in of ? "~g" : undefined).tickSize(MARGIN.left + MARGIN.right - width).tickPadding(8);
  svg.append("g").attr("transform", `translate(${MARGIN.left},0)`).call("decades" in of ? left : left.tickFormat(fine));
  svg.selectAll(".domain").remove();
  svg.selectAll(".tick").filter(function () { return !this.textContent; }).remove(); // of a logarithmic axis
  const below = d3.axisBottom(x).tickSize(0).tickPadding(8);
  if (of.kind === "bar") {
    const every = Math.ceil((x.domain().length * 46) / (width - MARGIN.left - MARGIN.right));
    below.tickValues(x.domain().filter((_, n) => n % every === 0));
  } else below.ticks(Math.max(2, Math.min(6, width / 90))).tickFormat("share" in of && "diagonal" in of ? percent(0) : short);
  svg.append("g").attr("transform", `translate(0,${HEIGHT - MARGIN.bottom})`).call(below);
  svg.append("text").attr("x", width - MARGIN.right).attr("y", HEIGHT - 4).attr("text-anchor", "end").text(of.x);
  if (of.y) svg.append("text").attr("x", 0).attr("y", 10).text(of.y);
}

// -- drawing

const marks = {
  line(svg, { colour, points }, [x, y]) {
    const path = points.map((point) => `${x(point.x)},${y(point.y)}`).join("L");
    svg.append("path").attr("class", `line ${colour}`).attr("d", `M${path}`);
    whiskers(svg, points, (point) => x(point.x), y);
    if (points.length <= 40) dots(svg, points, `dot ${colour}`, 3.5, x, y);
  },
  bar(svg, { colour, points }, [x, y]) {
    svg.append("g").selectAll("rect").data(points).join("rect").attr("class", `dim-bar ${colour}`)
      .attr("x", (point) => x(point.x)).attr("width", x.bandwidth())
      .attr("y", (point) => y(point.y)).attr("height", (point) => Math.max(0, y(0) - y(point.y)))
      .append("title").text((point) => point.told);
    whiskers(svg, points, (point) => x(point.x) + x.bandwidth() / 2, y);
  },
  scatter: (svg, { colour, points }, [x, y]) => dots(svg, points, `cloud ${colour}`, 3.5, x, y),
};

function dots(svg, points, className, radius, x, y) {
  svg.append("g").selectAll("circle").data(points).join("circle").attr("class", className).attr("r", radius)
    .attr("cx", (point) => x(point.x)).attr("cy", (point) => y(point.y)).append("title").text((point) => point.told);
}

function whiskers(svg, points, place, y) {
  svg.append("g").selectAll("line").data(points.filter((point) => point.bounds)).join("line").attr("class", "whisker")
    .attr("x1", place).attr("x2", place).attr("y1", (point) => y(point.bounds[0])).attr("y2", (point) => y(point.bounds[1]));
}

function draw(figure) {
  const drawing = figure.querySelector(".drawing");
  const width = drawing.clientWidth;
  const series = read(figure);
  const of = figure.dataset;
  if (!width || drawing.dataset.width === String(width)) return;
  drawing.dataset.width = width;
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${HEIGHT}`).attr("aria-hidden", "true");
  const both = scales(of, series.flatMap((each) => each.points), width);
  const [x, y] = both;
  axes(svg, of, both, width);
  if ("diagonal" in of) {
    const ends = [Math.max(x.domain()[0], y.domain()[0]), Math.min(x.domain()[1], y.domain()[1])];
    svg.append("line").attr("class", "diagonal").attr("x1", x(ends[0])).attr("x2", x(ends[1])).attr("y1", y(ends[0])).attr("y2", y(ends[1]));
  }
  if (of.mark !== undefined) svg.append("line").attr("class", "mark").attr("x1", x(of.mark)).attr("x2", x(of.mark)).attr("y1", MARGIN.top).attr("y2", HEIGHT - MARGIN.bottom);
  series.forEach((each) => marks[of.kind](svg, each, both));
  const legend = d3.create("div").attr("class", "legend").attr("aria-hidden", "true");
  if (series.length > 1) legend.selectAll("span").data(series).join("span").each(function (each) {
    d3.select(this).append("i").attr("class", each.colour);
    d3.select(this).append("b").text(each.name);
  });
  drawing.replaceChildren(legend.node(), svg.node());
}

// A drawing changes the height of the page, so the observer draws after it is through.
const figures = [...document.querySelectorAll("figure[data-kind]")];
const sized = new ResizeObserver(() => requestAnimationFrame(() => figures.forEach(draw)));
figures.forEach(draw);
sized.observe(document.body);

// -- the rows of a cell

const rows = [...document.querySelectorAll(".rows .results > li")];
const chosen = document.getElementById("chosen");
const buttons = [...document.querySelectorAll(".confusion button")];

function show(pair, said) {
  rows.forEach((row) => (row.hidden = pair !== null && !(row.dataset.pairs ?? "").split(" ").includes(pair)));
  document.querySelectorAll(".rows details").forEach((folded) => (folded.open = pair !== null));
  buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.pair === pair)));
  chosen.hidden = pair === null;
  chosen.querySelector("[role=status]").textContent = pair === null ? "" : `${said}; ${rows.filter((row) => !row.hidden).length} shown here.`;
  if (pair !== null) chosen.scrollIntoView({ block: "center" });
}

// Of a cell, its row and its column are the numbers of the wanted and the given label.
buttons.forEach((button) => {
  const [cell, line] = [button.parentElement, button.closest("tr")];
  const given = line.closest("table").tHead.rows[0].cells[cell.cellIndex].textContent;
  button.dataset.pair = `${line.sectionRowIndex}-${cell.cellIndex - 1}`;
  button.ariaLabel = button.title = `wanted ${line.cells[0].textContent}, given ${given}: ${button.textContent}`;
  button.addEventListener("click", () => show(button.dataset.pair, button.title));
});
document.getElementById("all")?.addEventListener("click", () => show(null));
