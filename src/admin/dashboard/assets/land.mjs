// Makes ../templates/land.html, the coast lines of the map: run `node land.mjs > ../templates/land.html` in a folder that
// has the npm packages `world-atlas` 2.0.2 (Natural Earth 110m land, public domain) and `topojson-client`.
// The projection is Natural Earth I (Šavrič et al. 2011); ../map.rs has the same polynomial.
import { readFileSync } from "node:fs";
import { feature } from "topojson-client";

const atlas = JSON.parse(readFileSync("node_modules/world-atlas/land-110m.json", "utf8"));
const WIDTH = 2000;
const CENTER_Y = 560;

function project([longitude, latitude]) {
  const lambda = (longitude * Math.PI) / 180;
  const phi = (latitude * Math.PI) / 180;
  const p2 = phi * phi;
  const p4 = p2 * p2;
  const x = lambda * (0.8707 - 0.131979 * p2 + p4 * (-0.013791 + p4 * (0.003971 * p2 - 0.001529 * p4)));
  const y = phi * (1.007226 + p2 * (0.015085 + p4 * (-0.044475 + 0.028874 * p2 - 0.005916 * p4)));
  const scale = WIDTH / (2 * 0.8707 * Math.PI);
  return [Math.round(WIDTH / 2 + x * scale), Math.round(CENTER_Y - y * scale)];
}

let path = "";
for (const polygon of feature(atlas, atlas.objects.land).features.flatMap((f) => f.geometry.type === "Polygon" ? [f.geometry.coordinates] : f.geometry.coordinates)) {
  for (const ring of polygon) {
    // Antarctica has no clients, and would take a fifth of the map.
    if (ring.every(([, latitude]) => latitude < -58)) continue;
    const points = ring.map(project).filter((point, at, all) => at === 0 || point.join() !== all[at - 1].join());
    if (points.length < 4) continue;
    path += "M" + points[0].join(" ") + "l";
    path += points.slice(1).map(([x, y], at) => {
      const [px, py] = points[at];
      const [dx, dy] = [x - px, y - py];
      return (at > 0 && dx >= 0 ? " " : "") + dx + (dy < 0 ? "" : " ") + dy;
    }).join("") + "z";
  }
}
process.stdout.write('<path class="land" d="' + path + '"/>\n');
