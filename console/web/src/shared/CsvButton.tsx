import { ActionIcon, Tooltip } from '@mantine/core'
import { download, toCsv, type Cell } from './csv'
import { Icon } from './icons'

/** Saves what a chart or a table shows as CSV. */
export function CsvButton({ name, what, header, rows }: { name: string; what: string; header: string[]; rows: () => Cell[][] }) {
  return (
    <Tooltip label="Download as CSV">
      <ActionIcon variant="subtle" color="gray" aria-label={`Download ${what} as CSV`} onClick={() => download(`${name}.csv`, toCsv(header, rows()))}>
        <Icon name="download" />
      </ActionIcon>
    </Tooltip>
  )
}
