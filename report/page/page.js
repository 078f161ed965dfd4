// Shows the charts' own titles at once, beside the pointer. Without it the browser shows them after a while.
(function () {
  var tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";
  document.addEventListener("pointermove", function (e) {
    var at = e.target.closest && e.target.closest(".hit,.mark,.cell,.node,.link,svg.live");
    // A chart that a script moves says itself what is under the pointer.
    var chart = at && at.closest("svg.live");
    var title = at && at !== chart && at.querySelector("title");
    if (title) {
      at.setAttribute("data-title", title.textContent);
      title.remove();
    }
    var text = at && (chart && !at.matches(".node") ? chart.under(e) : at.getAttribute("data-title"));
    tip.style.display = text ? "block" : "none";
    if (!text) return;
    tip.textContent = text;
    var r = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - r.width - 6)) + "px";
    tip.style.top = (e.clientY + 18 + r.height > innerHeight ? e.clientY - r.height - 10 : e.clientY + 18) + "px";
  });
})();
// Says of what is wider than its place that it goes on.
(function () {
  function look() {
    document.querySelectorAll(".scroll,figure.wide").forEach(function (e) { e.classList.toggle("more", e.scrollWidth > e.clientWidth + 2); });
  }
  addEventListener("resize", look);
  look();
})();
