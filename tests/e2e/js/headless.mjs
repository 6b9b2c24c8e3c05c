// Runs a graph as LangChain's JavaScript clients do: starts it, answers its headless tools, until none is open.
//   node headless.mjs URL GRAPH together|apart
import { Client, flushPendingHeadlessToolInterrupts } from "@langchain/langgraph-sdk";

const [url, graph, how] = process.argv.slice(2);
const client = new Client({ apiUrl: url });
const tools = [
  { tool: { name: "locate" }, execute: async ({ high }) => ({ lat: high ? 52.5 : 0, lon: 13.4 }) },
  {
    tool: { name: "copy_text" },
    execute: async () => {
      throw new Error("no permission");
    },
  },
  { tool: { name: "pick_file" }, execute: async () => ({ declined: "not now" }) },
];

const thread = await client.threads.create();
const events = [];
const handled = new Set();
let rounds = 0;
const input = { messages: [{ type: "human", content: "go" }] };
let values = await client.runs.wait(thread.thread_id, graph, { input });
while (values.__interrupt__?.length) {
  if (++rounds > 20) throw new Error("the questions never end");
  const seen = how === "apart" ? { ...values, __interrupt__: values.__interrupt__.slice(0, 1) } : values;
  const command = await new Promise((resolve) =>
    flushPendingHeadlessToolInterrupts(seen, tools, handled, {
      onTool: ({ phase, name }) => events.push(`${phase} ${name}`),
      resumeSubmit: resolve,
    }),
  );
  values = await client.runs.wait(thread.thread_id, graph, { command: { resume: command.resume } });
}
const state = await client.threads.getState(thread.thread_id);
console.log(JSON.stringify({ messages: state.values.messages, events, rounds }));
