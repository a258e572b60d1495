import type { Context } from 'hono';
import { invalidField } from './errors.ts';

const DEFAULT_PER_PAGE = 25;
const MAX_PER_PAGE = 50;

/** What a list can be sorted by. */
interface Sortable {
  readonly id: number;
  readonly name?: string;
  readonly createdMs?: number;
}

/**
 * Answers a list: sorts by `sort` (ascending ids unless asked otherwise), cuts out `page` of `per_page` (25, and more
 * than 50 count as 50), renders, and adds `meta.pagination` and the `Link` header.
 * Throws `invalid_input` on a page that is no positive number and on an unknown sort.
 */
export function listResponse<Item extends Sortable>(
  c: Context,
  key: string,
  items: readonly Item[],
  render: (item: Item) => object,
): Response {
  const page = positiveNumber(c, 'page') ?? 1;
  const perPage = Math.min(positiveNumber(c, 'per_page') ?? DEFAULT_PER_PAGE, MAX_PER_PAGE);
  const sorted = sortItems(items, c.req.queries('sort') ?? []);
  const lastPage = Math.max(1, Math.ceil(sorted.length / perPage));
  const pagination = {
    page,
    per_page: perPage,
    previous_page: page > 1 ? page - 1 : null,
    next_page: page < lastPage ? page + 1 : null,
    last_page: lastPage,
    total_entries: sorted.length,
  };
  const link = linkHeader(c.req.url, pagination);
  if (link !== '') c.header('Link', link);
  return c.json({
    [key]: sorted.slice((page - 1) * perPage, page * perPage).map(render),
    meta: { pagination },
  });
}

function positiveNumber(c: Context, name: string): number | undefined {
  const text = c.req.query(name);
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw invalidField(name, 'must be a positive number');
  return Number(text);
}

function sortItems<Item extends Sortable>(items: readonly Item[], sorts: readonly string[]): Item[] {
  const orders = (sorts.length === 0 ? ['id'] : sorts).map((sort) => {
    const match = /^(?<field>id|name|created|status|command)(?::(?<direction>asc|desc))?$/.exec(sort);
    if (match === null) throw invalidField('sort', `cannot sort by ${sort}`);
    return { field: match.groups?.['field'] ?? 'id', sign: match.groups?.['direction'] === 'desc' ? -1 : 1 };
  });
  return items.toSorted((a, b) => {
    for (const { field, sign } of orders) {
      const compared = compare(sortValue(a, field), sortValue(b, field));
      if (compared !== 0) return sign * compared;
    }
    return 0;
  });
}

function sortValue(item: Sortable, field: string): string | number {
  if (field === 'id') return item.id;
  if (field === 'created') return item.createdMs ?? item.id;
  const value: unknown = Reflect.get(item, field);
  return typeof value === 'string' ? value : '';
}

const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0);

function linkHeader(
  url: string,
  pages: { readonly previous_page: number | null; readonly next_page: number | null; readonly last_page: number },
): string {
  const link = (rel: string, page: number | null): string[] => {
    if (page === null) return [];
    const target = new URL(url);
    target.searchParams.set('page', String(page));
    return [`<${target.href}>; rel="${rel}"`];
  };
  return [
    ...link('prev', pages.previous_page),
    ...link('next', pages.next_page),
    ...link('last', pages.last_page),
  ].join(', ');
}
