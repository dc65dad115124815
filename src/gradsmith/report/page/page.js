"use strict";
(function () {
  const form = document.getElementById("filters");
  const status = document.getElementById("shown");
  const cards = [...document.querySelectorAll(".card")];

  function fits(wanted, value) { return wanted === "" || wanted === value; }

  function apply() {
    const severities = new Set([...form.querySelectorAll("[name=severity]:checked")].map((box) => box.value));
    const all = form.querySelectorAll("[name=severity]").length === severities.size;
    const value = (name) => (form.elements[name] ? form.elements[name].value : "");
    const words = value("words").toLowerCase();
    let shown = 0;
    for (const card of cards) {
      const here = fits(value("package"), card.dataset.package) && fits(value("verdict"), card.dataset.verdict);
      let own = 0;
      for (const finding of card.querySelectorAll(".finding")) {
        const text = words === "" || (card.dataset.name + " " + finding.textContent).toLowerCase().includes(words);
        const visible = here && severities.has(finding.dataset.severity) && fits(value("rule"), finding.dataset.rule) && text;
        finding.hidden = !visible;
        own += visible ? 1 : 0;
      }
      const named = words === "" || card.dataset.name.toLowerCase().includes(words);
      card.hidden = !(own > 0 || (here && all && value("rule") === "" && named));
      const row = document.getElementById("row-" + card.id);
      if (row) row.hidden = card.hidden;
      shown += own;
    }
    status.textContent = shown + " of " + form.dataset.count + " findings shown";
  }

  function copy(button) {
    const code = document.getElementById(button.dataset.copies);
    const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
    const select = () => {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
      done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select);
    else select();
  }

  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => copy(button));
  apply();
})();
