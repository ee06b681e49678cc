// SPDX-License-Identifier: MIT
// Draws the page of `kpack report` from the figures that stand in it.  Names are only ever set as
// text, so no byte of them is read as HTML.
"use strict";
(() => {
	const figures = JSON.parse(document.getElementById("figures").textContent);
	const KEYS = 32, COLOURS = 8; // architectures with a look of their own; colours among them
	const ROWS = 300; // that a table shows; the rest is one row

	const make = (name, attributes, ...children) => {
		const e = document.createElement(name);
		for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
		e.append(...children);
		return e;
	};
	const draw = (name, attributes, ...children) => {
		const e = document.createElementNS("http:/" + "/www.w3.org/2000/svg", name);
		for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
		e.append(...children);
		return e;
	};
	const all = (from, what) => Array.from(from.querySelectorAll(what));
	const sum = (rows, field) => rows.reduce((n, r) => n + r[field], 0);

	// ---- words and numbers
	const number = n => n.toLocaleString("en");
	const size = n => {
		const units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
		let i = 0;
		while (n >= 1024 && i + 1 < units.length) n /= 1024, i++;
		return (i ? n.toFixed(1) : n) + " " + units[i];
	};
	const exact = n => make("span", {title: number(n) + " bytes"}, size(n));
	const ratio = (decoded, stored) => stored ? (decoded / stored).toFixed(1) : "-";
	const share = (part, whole) => (whole ? 100 * part / whole : 0).toFixed(1) + "%";
	const short = (name, most = 240) => name.length <= most ? name : name.slice(0, most / 2) + "\u2026" + name.slice(-most / 2);
	const plural = (n, word) => number(n) + " " + word + (n === 1 ? "" : "s");

	const main = document.querySelector("main"), header = document.querySelector("header");
	main.replaceChildren();
	document.title = figures.title + " \u2013 kpack report";
	header.append(make("h1", {}, short(figures.title)));
	const say = (lead, ...words) => header.append(make("p", lead ? {class: "lead"} : {}, ...words));

	const measured = figures.measured;
	const mixed = measured && figures.archive_bytes > measured.packed; // a part of it is packed
	const say_all = () => {
		if (!figures.entries) return say(true, "There is no device code in it.");
		const first = figures.libraries[0];
		say(true, exact(figures.decoded), " of device code for " + plural(figures.architectures, "architecture") + ", stored in ",
			exact(figures.stored), ". The largest part is " + short(first.library, 96) + " with " + share(first.stored, figures.stored) + ".");
		if (figures.gpus)
			say(false, "For " + short(figures.gpus) + ", ", exact(figures.kept.decoded), " of it stay, stored in ", exact(figures.kept.stored),
				". Without the rest, ", exact(figures.freed.decoded), " of code would be freed, stored in ", exact(figures.freed.stored), ".");
		if (measured) {
			const rest = Math.max(0, figures.host.bytes - measured.bytes);
			say(false, ...(mixed ? ["Not all of it is packed yet: " + plural(measured.files, "file") + (measured.files === 1 ? " was" : " were") +
				" measured by packing. Besides archives of ", exact(figures.archive_bytes - measured.packed), " files take "]
				: ["It is not packed yet; these figures were measured by packing it. Its files take "]),
				exact(figures.host.bytes), " now. Packed, they would take about ", exact(rest + figures.archive_bytes), ": ", exact(rest),
				" of files without their device code, and ", exact(figures.archive_bytes), " of archives.");
		}
		// the family that saves the most; that of all GPUs only if there is no other
		const f = figures.families.find(x => x.by !== "all") || figures.families[0];
		if (f && f.apart === f.together)
			say(false, "Archives for families of GPUs would save nothing: their architectures have no code in common.");
		else if (f)
			say(false, "One archive for " + short(f.name, 96) + " instead of " + f.arches.length + " would take ", exact(f.together), " instead of ",
				exact(f.apart), ": the distribution saves ", exact(f.apart - f.together), ", and a user with one of these GPUs downloads ",
				exact(f.together), " instead of ", exact(f.most), f.least === f.most ? "." : " at most.");
	};

	const section = (id, title, text) => {
		const s = make("section", {id}, make("h2", {}, title), make("p", {}, text));
		main.append(s);
		return s;
	};
	const list_faults = () => {
		if (figures.faults.length)
			section("faults", "Faults", "Not everything could be read; what could be is shown.").append(
				make("ul", {}, ...figures.faults.map(f => make("li", {}, f))));
	};
	const list_figures = () => {
		const one = (name, value, note) => make("div", {}, make("dt", {}, name), make("dd", {}, value), ...(note ? [make("dd", {class: "note"}, note)] : []));
		const plain = measured && !mixed;
		main.append(make("dl", {class: "figures"},
			one("Stored", exact(figures.stored), "compressed code"), one("Decoded", exact(figures.decoded), "as programs load it"),
			one("Ratio", ratio(figures.decoded, figures.stored), "decoded to stored"),
			...(figures.gpus ? [one("Kept", exact(figures.kept.stored), "what the GPUs can load, stored"),
				one("Freed", exact(figures.freed.stored), "stored code of other GPUs")] : []),
			one("Dedup saved", exact(figures.saved), "bytes that several entries share"), one("Still twice", exact(figures.saving), "equal bytes in several archives"),
			...(figures.host ? [one(plain ? "Files" : "Host files", exact(figures.host.bytes), plain ? "as they are, not packed" : "all but the archives")] : []),
			one("Architectures", number(figures.architectures)), one("Binaries", number(figures.binaries), "with device code"),
			one("Objects", number(figures.objects), "stored"), one("Entries", number(figures.entries), "names for them"),
			one("Archives", number(figures.archives.length)), ...(figures.host ? [one("Other files", number(figures.host.files))] : [])));
	};

	// ---- the map: a box for each library, in it one for each architecture
	// Bruls, Huizing and van Wijk, "Squarified treemaps" (2000): rows of boxes as square as can be.
	const squarify = (sizes, box) => {
		const out = [];
		let {x, y, w, h} = box, rest = sizes.reduce((a, b) => a + b, 0), from = 0;
		const worst = (side, area, least, most) => Math.max(side * side * most / (area * area), area * area / (side * side * least));
		while (from < sizes.length && rest > 0) {
			const scale = w * h / rest, side = Math.min(w, h);
			let to = from, area = 0, now = Infinity;
			while (to < sizes.length) {
				const more = area + sizes[to] * scale;
				const next = worst(side, more, sizes[to] * scale, sizes[from] * scale);
				if (to > from && next > now) break;
				area = more, now = next, to++;
			}
			const thick = side ? area / side : 0;
			for (let i = from, at = 0; i < to; i++) {
				const long = thick ? sizes[i] * scale / thick : 0;
				out.push(w < h ? {x: x + at, y, w: long, h: thick} : {x, y: y + at, w: thick, h: long});
				at += long;
			}
			if (w < h) y += thick, h -= thick;
			else x += thick, w -= thick;
			rest -= sizes.slice(from, to).reduce((a, b) => a + b, 0);
			from = to;
		}
		while (out.length < sizes.length) out.push({x, y, w: 0, h: 0});
		return out;
	};
	// Nodes smaller than LEAST become one, and stand last.
	const settle = (nodes, field, least) => {
		const large = nodes.filter(n => n[field] >= least && n[field] > 0), small = nodes.filter(n => n[field] < least && n[field] > 0);
		large.sort((a, b) => b[field] - a[field]);
		if (small.length === 1) large.push(small[0]);
		else if (small.length) large.push({others: small.length, decoded: sum(small, "decoded"), stored: sum(small, "stored")});
		return large;
	};
	const look = new Map(figures.arches.map((a, i) => [a.arch, i < KEYS ? "k" + i : "kx"]));
	const words = new Map(); // of each box: what is shown under the pointer
	const tip = make("div", {class: "tip"});
	tip.hidden = true;
	const show = (text, x, y) => {
		tip.textContent = text;
		tip.hidden = false;
		tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 4)) + "px";
		tip.style.top = (y + tip.offsetHeight + 24 > innerHeight ? y - tip.offsetHeight - 10 : y + 16) + "px";
	};
	const hide = () => { tip.hidden = true; };
	const box_of = (group, at, style, lines) => {
		const rect = draw("rect", {x: at.x, y: at.y, width: at.w, height: at.h, class: style});
		words.set(rect, lines);
		group.append(rect);
	};
	// Letters are about 7 wide and 16 high; the lines end where one has no room.
	const write = (group, lines, at, style, scale = 1) => lines.every((line, i) => {
		if (at.h * scale <= 20 + 16 * i || at.w * scale <= 12 + 7 * line.length) return false;
		const text = draw("text", {x: at.x + 6 / scale, y: at.y + (16 + 16 * i) / scale, class: style[Math.min(i, style.length - 1)]}, line);
		text.style.fontSize = 12 / scale + "px";
		group.append(text);
		return true;
	});
	const zoom = (svg, group) => {
		const [, , W, H] = svg.dataset.full.split(" ").map(Number);
		all(svg, ".z").forEach(e => e.remove());
		all(svg, ".now").forEach(e => e.classList.remove("now"));
		svg.classList.toggle("zoomed", !!group);
		svg.setAttribute("viewBox", svg.dataset.full);
		hide();
		if (!group) return;
		const {x, y, w, h} = group.at, k = Math.max(1, Math.min(W / w, H / h, 60) * 0.98);
		svg.setAttribute("viewBox", [x + w / 2 - W / k / 2, y + h / 2 - H / k / 2, W / k, H / k].join(" "));
		group.classList.add("now");
		all(group, "rect").filter(r => words.has(r)).forEach((r, i) => {
			const [x, y, w, h] = ["x", "y", "width", "height"].map(n => Number(r.getAttribute(n)));
			write(group, i ? words.get(r).slice(1) : words.get(r), {x, y, w, h}, ["z"], k);
		});
	};
	const draw_map = (field, width, height) => {
		const full = "0 0 " + width + " " + height, least = figures[field] / (width === 400 ? 300 : 1200);
		const svg = draw("svg", {class: "map", viewBox: full, "data-full": full, role: "group", "aria-label": "Libraries by " + field + " bytes"});
		const nodes = settle(figures.libraries, field, least);
		const numbers = n => [size(n.stored) + " stored, " + size(n.decoded) + " decoded", share(n[field], figures[field]) + " of all"];
		squarify(nodes.map(n => n[field]), {x: 0, y: 0, w: width, h: height}).forEach((at, i) => {
			const node = nodes[i], name = node.others ? node.others + " others" : short(node.library, 96);
			const group = draw("g", node.others ? {} : {class: "lib", tabindex: 0, role: "button", "aria-label": "Zoom: " + name});
			group.at = at;
			box_of(group, at, "kx", [name, ...numbers(node)]);
			const cells = node.others ? [] : settle(node.arches, field, least);
			squarify(cells.map(c => c[field]), at).forEach((inner, k) => {
				const cell = cells[k], arch = cell.others ? cell.others + " others" : short(cell.arch, 96);
				box_of(group, inner, look.get(cell.arch) || "kx", [name, arch, ...numbers(cell)]);
				write(group, [arch, size(cell[field])], {x: inner.x, y: inner.y + (k ? 0 : 18), w: inner.w, h: inner.h - (k ? 0 : 18)}, ["a", "s"]);
			});
			write(group, [name], at, ["l"]);
			group.append(draw("rect", {x: at.x, y: at.y, width: at.w, height: at.h, class: "o"}));
			svg.append(group);
		});
		svg.addEventListener("pointermove", e => words.has(e.target) ? show(words.get(e.target).join("\n"), e.clientX, e.clientY) : hide());
		svg.addEventListener("pointerleave", hide);
		all(svg, ".lib").forEach(group => {
			const turn = () => zoom(svg, svg.classList.contains("zoomed") ? null : group);
			group.addEventListener("click", turn);
			group.addEventListener("blur", hide);
			group.addEventListener("focus", () => {
				const r = group.getBoundingClientRect();
				if (group.matches(":focus-visible")) show(words.get(group.firstChild).join("\n"), r.left, r.top);
			});
			group.addEventListener("keydown", e => {
				if (e.key === "Enter" || e.key === " ") e.preventDefault(), turn();
				if (e.key === "Escape") zoom(svg, null);
			});
		});
		return svg;
	};
	const patterns = () => {
		const shapes = ["", "M-2 2L2-2M0 8L8 0M6 10L10 6", "M-2 6L2 10M0 0L8 8M6-2L10 2", "M0 4H8"], defs = draw("defs", {});
		for (let i = COLOURS; i < KEYS; i++)
			defs.append(draw("pattern", {id: "p" + i, width: 8, height: 8, patternUnits: "userSpaceOnUse"},
				draw("rect", {class: "k" + i % COLOURS, width: 8, height: 8}), draw("path", {d: shapes[Math.floor(i / COLOURS)]})));
		return draw("svg", {class: "defs", width: 0, height: 0, "aria-hidden": "true"}, defs);
	};
	const map_section = () => {
		if (!figures.entries) return;
		const s = section("maps", "What is big", "A box for each library, in it one for each architecture. The area stands for bytes. " +
			"Click on a library to look closer; another click or Escape goes back.");
		const maps = make("div", {class: "maps"}), narrow = matchMedia("(max-width:700px)");
		let field = "stored";
		const redraw = () => maps.replaceChildren(draw_map(field, narrow.matches ? 400 : 1200, 640));
		const choice = (name, value) => {
			const input = make("input", {type: "radio", name: "by", id: "by-" + value});
			input.checked = value === field;
			input.addEventListener("change", () => { field = value, redraw(); });
			return [input, make("label", {for: "by-" + value}, name)];
		};
		narrow.addEventListener("change", redraw);
		const legend = figures.arches.slice(0, KEYS).map((a, i) => make("li", {},
			draw("svg", {width: 14, height: 14, "aria-hidden": "true"}, draw("rect", {class: "k" + i, width: 14, height: 14, rx: 2})),
			" " + short(a.arch, 96) + " ", make("small", {}, exact(a.stored))));
		if (figures.arches.length > KEYS) legend.push(make("li", {}, "and " + (figures.arches.length - KEYS) + " more, in grey"));
		s.append(patterns(), ...choice("Stored", "stored"), ...choice("Decoded", "decoded"), maps, make("ul", {class: "legend", "aria-label": "Architectures"}, ...legend));
		redraw();
	};

	// ---- tables: a column has a name, the value to sort by, and how it is shown
	const text = (name, value) => ({name, value, show: v => short(v)});
	const count = (name, value) => ({name, value, n: true, show: number});
	const bytes = (name, value) => ({name, value, n: true, show: exact});
	const range = (name, least, most) => ({name, value: most, n: true,
		show: (v, r) => least(r) === most(r) ? size(v) : size(least(r)) + " to " + size(v)});
	const quotient = {name: "Ratio", value: r => r.stored ? r.decoded / r.stored : 0, n: true, show: (v, r) => ratio(r.decoded, r.stored)};
	const part = {name: "Share", value: r => r.stored, n: true, show: v => {
		const bar = draw("svg", {class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true"},
			draw("rect", {width: figures.stored ? 100 * v / figures.stored : 0, height: 8}));
		return make("span", {class: "b"}, bar, make("span", {}, share(v, figures.stored)));
	}};
	const decoded = bytes("Decoded", r => r.decoded), stored = bytes("Stored", r => r.stored);
	const sums = [count("Objects", r => r.objects), count("Entries", r => r.entries), decoded, stored, quotient, part];
	const tables = [
		["arches", "Architectures", "What each architecture takes. Stored bytes that several entries share count for the first of them.",
			figures.arches, "Stored", [text("Architecture", r => r.arch), ...sums]],
		["libraries", "Libraries", "Binaries by their path, and the files of each kernel database together.",
			figures.libraries, "Stored", [text("Library", r => r.library), text("Kind", r => r.database ? "database" : "binary"), ...sums]],
		["databases", "Kernel databases", "The files that libraries open by name, by what they are for.",
			figures.databases, "Stored", [text("Library", r => r.library), text("Role", r => r.role), ...sums]],
		["families", "Families", "What one archive for several architectures would change: the distribution gets smaller by what its members " +
			"have in common; a user with one GPU downloads the whole family.", figures.families, "Saves",
			[text("Family", r => r.name), text("By", r => r.by),
				text("Architectures", r => r.arches.slice(0, 32).join(", ") + (r.arches.length > 32 ? " and " + (r.arches.length - 32) + " more" : "")),
				bytes("Apart", r => r.apart), bytes("Together", r => r.together), bytes("Saves", r => r.apart - r.together),
				range("A user downloads now", r => r.least, r => r.most), range("and more", r => r.together - r.most, r => r.together - r.least)]],
		["largest", "Largest objects", "One by one, with the first name of each.", figures.largest, "Stored",
			[text("Name", r => r.key), text("Architecture", r => r.arch), count("Entries", r => r.entries), decoded, stored, quotient, part]],
		["twice", "Duplicates", "The same bytes in several archives. Inside an archive they are stored once already.", figures.duplicates, "Would save",
			[text("First name", r => r.key), text("First architecture", r => r.arch), count("Copies", r => r.copies), decoded, stored,
				bytes("Would save", r => r.saving)]],
		["archives", "Archives", "The files themselves, tables of contents included.", figures.archives, null,
			[text("Archive", r => r.name), count("Entries", r => r.entries), bytes("Size", r => r.bytes)]],
	];
	const row = (r, columns) => make("tr", {}, ...columns.map((c, i) => {
		const value = c.value(r), cell = make(i ? "td" : "th", c.n ? {class: "n"} : i ? {} : {scope: "row"}, c.show(value, r));
		cell.value = value;
		return cell;
	}));
	const sort = (table, i, way) => {
		const body = table.tBodies[0], sign = way === "up" ? 1 : -1;
		const rows = Array.from(body.rows, (r, at) => ({r, at, v: r.cells[i].value}));
		rows.sort((a, b) => sign * ((a.v > b.v) - (a.v < b.v)) || a.at - b.at);
		body.append(...rows.map(x => x.r));
		all(table.tHead, "th").forEach((th, k) => {
			if (k === i) th.setAttribute("aria-sort", way === "up" ? "ascending" : "descending");
			else th.removeAttribute("aria-sort");
		});
	};
	const put_table = ([id, title, about, rows, sorted, columns]) => {
		if (!rows.length) return;
		const heads = columns.map((c, i) => {
			const th = make("th", {scope: "col", ...(c.n && {class: "n"}), ...(c.name === sorted && {"aria-sort": "descending"})},
				make("button", {type: "button"}, c.name));
			th.firstChild.addEventListener("click", () => {
				const now = th.getAttribute("aria-sort"), way = now === "descending" ? "up" : now === "ascending" ? "down" : c.n ? "down" : "up";
				sort(table, i, way);
				history.replaceState(null, "", "#sort=" + id + "," + i + "," + way);
			});
			return th;
		});
		const table = make("table", {id}, make("caption", {}, title), make("thead", {}, make("tr", {}, ...heads)),
			make("tbody", {}, ...rows.slice(0, ROWS).map(r => row(r, columns))));
		if (rows.length > ROWS) {
			const rest = rows.slice(ROWS), total = {};
			for (const f of ["objects", "entries", "decoded", "stored"]) total[f] = sum(rest, f);
			const known = columns.map(c => sums.includes(c) && c);
			table.append(make("tfoot", {}, make("tr", {}, make("th", {scope: "row"}, rest.length + " others"),
				...known.slice(1).map(c => c ? make("td", {class: "n"}, c.show(c.value(total), total)) : make("td", {})))));
		}
		section("s-" + id, title, about).append(make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": title}, table));
	};

	say_all();
	list_faults();
	list_figures();
	map_section();
	tables.forEach(put_table);
	document.body.append(tip);
	addEventListener("scroll", hide, {passive: true});
	const asked = /^#sort=([a-z]+),(\d+),(up|down)$/.exec(location.hash), table = asked && document.getElementById(asked[1]);
	if (table && table.tHead && Number(asked[2]) < table.tHead.rows[0].cells.length) {
		sort(table, Number(asked[2]), asked[3]);
		table.scrollIntoView();
	}
})();
