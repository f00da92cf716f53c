// How the site's search orders its hits: what answers a reader's question, classes of exactly that name, pages, other names.
var Scorer = {
  score: ([page, , , description, score, , kind]) => {
    if (kind === "index") return score + 100; // docs/search.toml names the page
    const isAttribute = /attribute|property|method|data/.test(description ?? "");
    if (kind === "object") return score + (score > Scorer.objNameMatch && !isAttribute ? 60 : 0);
    if (page.startsWith("reference")) return score - 20;
    if (page === "architecture" || page === "conformance" || page === "changelog") return score;
    return score + 30;
  },

  // Sphinx' own numbers, which it doesn't take from elsewhere where there is a Scorer.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
