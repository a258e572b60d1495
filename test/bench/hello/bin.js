// The least that oclif can do: what the start of the CLI is compared with. Compiled modules are kept between starts, as the CLI's are.
import module from 'node:module';

module.enableCompileCache();
const { execute } = await import('@oclif/core');
await execute({ dir: import.meta.url });
