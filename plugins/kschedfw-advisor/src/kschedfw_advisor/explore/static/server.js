// The server's answers. A refusal is thrown as an Error with the server's own words.

/** The server doesn't answer at all. */
export class GoneError extends Error {
  constructor() {
    super("kschedfw explore doesn’t answer; has it ended? What is shown is what it said last.");
  }
}

async function asked(path, body) {
  const options =
    body === undefined
      ? {}
      : {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(body),
        };
  let response;
  try {
    response = await fetch(path, { ...options, credentials: "same-origin", redirect: "error" });
  } catch {
    throw new GoneError();
  }
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

/** The JSON interface; see ExploreApp in kschedfw_advisor/explore/app.py. */
export const server = {
  state: () => asked("/api/state"),
  tried: (changes) => asked("/api/try", { changes }),
  keep: (changes) => asked("/api/keep", { changes }),
  undo: () => asked("/api/undo", {}),
  redo: () => asked("/api/redo", {}),
  explain: (pod, changes) => asked("/api/explain", { pod, changes }),
  explainGroup: (group, changes) => asked("/api/explain-group", { group, changes }),
  advice: (changes) => asked("/api/advice", { changes }),
  emptied: (node, changes) => asked("/api/emptied", { node, changes }),
  configurations: () => asked("/api/configurations"),
  replay: (wanted) => asked("/api/replay", wanted),
  news: () => asked("/api/news"),
  cancel: () => asked("/api/cancel", {}),
};
