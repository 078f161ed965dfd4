// Moves the pictures of networks through time. The numbers are in the attributes that chart.Network describes.
(function () {
  function format(v, unit) {
    if (isNaN(v)) return "not known";
    if (unit === "fraction") return +(100 * v).toPrecision(3) + " %";
    var name = unit, steps = ["", "K", "M", "G", "T"];
    if (unit === "us") { name = "µs"; if (v >= 1e3) { v /= 1e3; name = "ms"; } return +v.toPrecision(3) + " " + name; }
    var i = 0;
    while (v >= 1e3 && i < steps.length - 1) { v /= 1e3; i++; }
    return +v.toPrecision(3) + " " + steps[i] + name;
  }
  function time(s) {
    var steps = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]], k = 0;
    while (k < 2 && s < steps[k][0]) k++;
    return +(s / steps[k][0]).toPrecision(4) + " " + steps[k][1];
  }
  document.querySelectorAll("svg.network").forEach(function (svg) {
    var box = svg.parentNode.querySelector(".player"), readout = svg.parentNode.querySelector(".readout");
    if (!box || !svg.hasAttribute("data-measures")) return;
    var list = function (name, by) { return (svg.getAttribute(name) || "").split(by).filter(Boolean); };
    var times = list("data-times", " ").map(Number), shades = list("data-shades", " "), idle = svg.getAttribute("data-idle");
    var digits = svg.getAttribute("data-digits");
    var measures = list("data-measures", ";").map(function (m) {
      var p = m.split("|");
      return { name: p[0], whole: p[1], unit: p[2], max: +p[3], wholeMax: +p[4] };
    });
    var links = [].map.call(svg.querySelectorAll(".link"), function (el) {
      var whole = el.getAttribute("data-whole").split("|"), over = (el.getAttribute("data-over") || "").split("|");
      var title = el.querySelector("title");
      if (title) title.remove();
      return {
        el: el, thick: +el.getAttribute("data-thick"),
        x1: +el.getAttribute("x1"), y1: +el.getAttribute("y1"), x2: +el.getAttribute("x2"), y2: +el.getAttribute("y2"),
        ways: el.getAttribute("data-names").split("|").map(function (name, i) {
          return { name: name, whole: (whole[i] || "").split(" ").map(function (s) { return s === "-" || s === "" ? NaN : +s; }), over: (over[i] || "").split(";") };
        })
      };
    }).reverse(); // the busiest first
    var scales = svg.querySelectorAll(".scale"), button = box.querySelector(".play"), choice = box.querySelector("select");
    var slider = box.querySelector("input"), output = box.querySelector("output");
    var hint = "Point at a link for its figures, or focus the picture with Tab and step through the links with the arrow keys.";
    var measure = 0, slice = 0, chosen = null, timer = 0;
    // The value of a direction: of the whole run at 0, else of a slice.
    function value(way, m, at) {
      if (at === 0) return way.whole[m];
      var s = way.over[m] || "", i = 2 * (at - 1);
      if (i + 1 >= s.length) return 0;
      var n = 64 * digits.indexOf(s[i]) + digits.indexOf(s[i + 1]);
      return n === 4095 ? NaN : measures[m].max * n / 4094;
    }
    function say(link) {
      return link.ways.map(function (w) {
        return w.name + ": " + measures.map(function (m, i) {
          return (slice ? m.name : m.whole) + " " + format(value(w, i, slice), m.unit);
        }).join(", ");
      }).join("\n");
    }
    function when() {
      if (!slice) return "whole run";
      return time(slice > 1 ? times[slice - 2] : 0) + " to " + time(times[slice - 1]);
    }
    function draw() {
      var most = slice ? measures[measure].max : measures[measure].wholeMax;
      links.forEach(function (l) {
        var share = 0;
        l.ways.forEach(function (w) { var v = value(w, measure, slice) / most; if (v > share) share = Math.min(v, 1); });
        l.el.setAttribute("stroke", share > 0 ? shades[Math.round(share * (shades.length - 1))] : idle);
        l.el.setAttribute("stroke-width", (l.thick * (1 + 1.6 * share)).toFixed(2));
      });
      scales.forEach(function (g, i) { g.classList.toggle("off", i !== measure + (slice ? measures.length : 0)); });
      output.textContent = when();
      slider.setAttribute("aria-valuetext", when());
      if (chosen) readout.textContent = say(chosen);
    }
    function choose(link) {
      if (chosen) chosen.el.classList.remove("on");
      chosen = link;
      if (link) link.el.classList.add("on");
      readout.textContent = link ? say(link) : hint;
    }
    function nearest(e) {
      var m = svg.getScreenCTM();
      if (!m) return null;
      var p = new DOMPoint(e.clientX, e.clientY).matrixTransform(m.inverse()), best = null, least = 9;
      links.forEach(function (l) {
        var dx = l.x2 - l.x1, dy = l.y2 - l.y1, t = ((p.x - l.x1) * dx + (p.y - l.y1) * dy) / (dx * dx + dy * dy || 1);
        t = Math.min(1, Math.max(0, t));
        var d = Math.hypot(p.x - l.x1 - t * dx, p.y - l.y1 - t * dy);
        if (d < least) { least = d; best = l; }
      });
      return best;
    }
    svg.classList.add("live");
    svg.under = function (e) {
      var l = nearest(e);
      choose(l);
      return l ? say(l) : "";
    };
    // One stop of the tab key; the arrow keys go through the links.
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-description", "Arrow keys step through the links, busiest first");
    svg.addEventListener("keydown", function (e) {
      var i = chosen ? links.indexOf(chosen) : -1, n = links.length;
      if (e.key === "ArrowRight" || e.key === "ArrowDown") i = (i + 1) % n;
      else if (e.key === "ArrowLeft" || e.key === "ArrowUp") i = (i + n - 1 + (i < 0 ? 1 : 0)) % n;
      else if (e.key === "Home") i = 0;
      else if (e.key === "End") i = n - 1;
      else if (e.key === "Escape") i = -1;
      else return;
      e.preventDefault();
      choose(i < 0 ? null : links[i]);
    });
    function stop() {
      clearInterval(timer);
      timer = 0;
      button.textContent = "▶";
      button.setAttribute("aria-label", "Play");
    }
    function go(to) { slice = to; slider.value = to; draw(); }
    button.addEventListener("click", function () {
      if (timer) return stop();
      if (slice >= times.length) go(0);
      button.textContent = "❚❚";
      button.setAttribute("aria-label", "Pause");
      timer = setInterval(function () {
        if (slice >= times.length) return stop();
        go(slice + 1);
      }, Math.max(60, Math.min(250, 8000 / times.length)));
    });
    slider.max = times.length;
    slider.addEventListener("input", function () { stop(); go(+slider.value); });
    measures.forEach(function (m, i) { choice.add(new Option(m.name, i)); });
    choice.addEventListener("change", function () { measure = +choice.value; draw(); });
    if (!times.length) { button.hidden = true; slider.parentNode.hidden = true; }
    box.hidden = readout.hidden = false;
    choose(null);
    draw();
  });
})();
