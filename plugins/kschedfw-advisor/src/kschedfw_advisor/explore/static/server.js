// The server's answers. A refusal is thrown as an Error with the server's own words.

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
    throw new Error("kschedfw explore doesn’t answer; has it ended?");
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
  configurations: () => asked("/api/configurations"),
  replay: (wanted) => asked("/api/replay", wanted),
};
