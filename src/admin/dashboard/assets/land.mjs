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

// Longitudes go on beyond 180 degrees where a ring crosses that meridian, so that it can be cut there.
function unwrap(ring) {
  let turn = 0;
  return ring.map(([longitude, latitude], at) => {
    const step = at === 0 ? 0 : longitude - ring[at - 1][0];
    if (step > 180) turn -= 360;
    if (step < -180) turn += 360;
    return [longitude + turn, latitude];
  });
}

// Keeps what is on one side of a meridian (Sutherland and Hodgman 1974).
function cut(ring, meridian, side) {
  const inside = ([longitude]) => (longitude - meridian) * side <= 0;
  return ring.flatMap((point, at) => {
    const last = ring[(at + ring.length - 1) % ring.length];
    const share = (meridian - last[0]) / (point[0] - last[0]);
    const edge = [meridian, last[1] + share * (point[1] - last[1])];
    if (inside(point)) return inside(last) ? [point] : [edge, point];
    return inside(last) ? [edge] : [];
  });
}

// Gives the parts of a ring on the map.
function parts(ring) {
  const whole = unwrap(ring);
  return [-360, 0, 360]
    .map((shift) => whole.map(([longitude, latitude]) => [longitude + shift, latitude]))
    .map((moved) => cut(cut(moved, 180, 1), -180, -1))
    .filter((part) => part.length > 3);
}

let path = "";
for (const polygon of feature(atlas, atlas.objects.land).features.flatMap((f) => f.geometry.type === "Polygon" ? [f.geometry.coordinates] : f.geometry.coordinates)) {
  for (const ring of polygon.flatMap(parts)) {
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
