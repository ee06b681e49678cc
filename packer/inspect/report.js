// SPDX-License-Identifier: MIT
"use strict";
(() => {
	const all = (from, what) => Array.from(from.querySelectorAll(what));
	const make = (name, text) => {
		const e = document.createElement(name);
		e.textContent = text;
		return e;
	};
	const value = (row, i) => {
		const v = row.cells[i].getAttribute("data-v");
		return v === null ? row.cells[i].textContent : Number(v);
	};
	const order = (a, b) => a < b ? -1 : a > b ? 1 : 0;
	const sort = (table, i, way) => {
		const body = table.tBodies[0];
		const rows = Array.from(body.rows, (row, at) => ({row, at, v: value(row, i)}));
		rows.sort((a, b) => (way === "up" ? order(a.v, b.v) : order(b.v, a.v)) || a.at - b.at);
		body.append(...rows.map(r => r.row));
		all(table.tHead, "th").forEach((th, k) => {
			if (k === i) th.setAttribute("aria-sort", way === "up" ? "ascending" : "descending");
			else th.removeAttribute("aria-sort");
		});
	};
	const choose = (table, th, i) => {
		const now = th.getAttribute("aria-sort");
		const first = th.classList.contains("n") ? "down" : "up";
		const way = now === "descending" ? "up" : now === "ascending" ? "down" : first;
		sort(table, i, way);
		history.replaceState(null, "", "#sort=" + table.id + "," + i + "," + way);
	};
	all(document, "table").forEach(table => all(table.tHead, "th").forEach((th, i) => {
		const button = make("button", th.textContent);
		button.type = "button";
		button.addEventListener("click", () => choose(table, th, i));
		th.replaceChildren(button);
	}));
	const asked = /^#sort=([a-z]+),(\d+),(up|down)$/.exec(location.hash);
	const table = asked && document.getElementById(asked[1]);
	if (table && table.tHead && Number(asked[2]) < table.tHead.rows[0].cells.length) {
		sort(table, Number(asked[2]), asked[3]);
		table.scrollIntoView();
	}
	const tip = make("div", "");
	tip.className = "tip";
	tip.hidden = true;
	document.body.append(tip);
	const words = new Map();
	all(document, ".map rect[data-b]").forEach(rect => {
		words.set(rect, rect.textContent);
		rect.replaceChildren();
	});
	const show = (text, x, y) => {
		tip.textContent = text;
		tip.hidden = false;
		tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 4)) + "px";
		tip.style.top = (y + tip.offsetHeight + 24 > innerHeight ? y - tip.offsetHeight - 10 : y + 16) + "px";
	};
	const hide = () => { tip.hidden = true; };
	addEventListener("scroll", hide, {passive: true});
	const label = (g, text, x, y, size) => {
		const e = document.createElementNS("http:/" + "/www.w3.org/2000/svg", "text");
		e.textContent = text;
		e.setAttribute("x", x);
		e.setAttribute("y", y);
		e.setAttribute("class", "z");
		e.style.fontSize = size + "px";
		g.append(e);
	};
	const relabel = (g, k) => all(g, "rect[data-b]").forEach((rect, at) => {
		const [x, y, w, h] = ["x", "y", "width", "height"].map(n => Number(rect.getAttribute(n)));
		const lines = words.get(rect).split("\n").slice(at && -2);
		lines.forEach((line, i) => {
			if (h * k > 20 + 16 * i && w * k > 12 + 7 * line.length)
				label(g, line, x + 6 / k, y + (16 + 16 * i) / k, 12 / k);
		});
	});
	const zoom = (svg, full, g) => {
		all(svg, ".z").forEach(e => e.remove());
		all(svg, ".now").forEach(e => e.classList.remove("now"));
		svg.classList.toggle("zoomed", !!g);
		svg.setAttribute("viewBox", full);
		hide();
		if (!g) return;
		const [x, y, w, h] = g.dataset.z.split(" ").map(Number);
		const [, , W, H] = full.split(" ").map(Number);
		const k = Math.max(1, Math.min(W / w, H / h, 60) * 0.98);
		svg.setAttribute("viewBox", [x + w / 2 - W / k / 2, y + h / 2 - H / k / 2, W / k, H / k].join(" "));
		g.classList.add("now");
		relabel(g, k);
	};
	all(document, "#maps>p").forEach(p => p.append(
		" Click on a library to look closer; another click or Escape goes back."));
	all(document, ".map").forEach(svg => {
		const full = svg.getAttribute("viewBox");
		const turn = g => zoom(svg, full, svg.classList.contains("zoomed") ? null : g);
		svg.setAttribute("role", "group");
		svg.addEventListener("pointermove", e => {
			if (words.has(e.target)) show(words.get(e.target), e.clientX, e.clientY);
			else hide();
		});
		svg.addEventListener("pointerleave", hide);
		all(svg, ".lib").forEach(g => {
			const rect = g.querySelector("rect[data-b]");
			const text = words.get(rect);
			g.setAttribute("tabindex", "0");
			g.setAttribute("role", "button");
			g.setAttribute("aria-label", "Zoom: " + text.split("\n")[0]);
			g.addEventListener("click", () => turn(g));
			g.addEventListener("focus", () => {
				const r = g.getBoundingClientRect();
				if (g.matches(":focus-visible")) show(text, r.left, r.top);
			});
			g.addEventListener("blur", hide);
			g.addEventListener("keydown", e => {
				if (e.key === "Enter" || e.key === " ") {
					e.preventDefault();
					turn(g);
				}
				if (e.key === "Escape") zoom(svg, full, null);
			});
		});
	});
})();
