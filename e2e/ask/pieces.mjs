// Gathers what a stream hands out piece by piece.
export class Pieces {
  text = '';
  deltas = 0;
  policy = undefined;

  add(text) {
    if (!text) return;
    this.text += text;
    this.deltas++;
  }

  // The answer that the client's own accumulator made of the pieces.
  finish(answer) {
    if (answer.text !== this.text) {
      throw new Error(`accumulated ${JSON.stringify(answer.text)} of ${JSON.stringify(this.text)}`);
    }
    return { ...answer, deltas: this.deltas, stoplog: this.policy };
  }
}

// What a client made of structured output must be what the text says.
export function sameObject(object, text) {
  if (JSON.stringify(object) !== JSON.stringify(JSON.parse(text))) {
    throw new Error(`the object is ${JSON.stringify(object)}, the text ${text}`);
  }
}
