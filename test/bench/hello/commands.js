import { Command } from '@oclif/core';

class Hello extends Command {
  run() {
    this.log('hello');
    return Promise.resolve();
  }
}

export const commands = { hello: Hello };
