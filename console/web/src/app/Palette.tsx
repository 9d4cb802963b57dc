import { Spotlight, type SpotlightActionGroupData } from '@mantine/spotlight'
import { useMantineColorScheme } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { screens } from '@/screens/registry'
import type { Screen } from '@/screens/screen'
import { useMay } from '@/shared/api/session'
import { useCapturedChannels } from '@/shared/captured'
import { Icon } from '@/shared/icons'

/** Every screen and command by name: Ctrl K, or ⌘ K. */
export function Palette() {
  const may = useMay()
  const navigate = useNavigate()
  const { setColorScheme } = useMantineColorScheme()
  const go = (to: string) => () => void navigate({ to: to as '/segments' })
  const captures = useCapturedChannels().length > 0
  const all = screens as readonly Screen[]
  const allowed = (permission?: string) => !permission || may(permission)
  const actions: SpotlightActionGroupData[] = [
    { group: 'Screens', actions: all.flatMap(({ nav }) => (nav && allowed(nav.permission) && (!nav.whileCaptured || captures) ? [{ id: nav.to, label: nav.label, onClick: go(nav.to), leftSection: <Icon name={nav.icon} /> }] : [])) },
    {
      group: 'Commands',
      actions: [
        ...all.flatMap((s) => (s.commands ?? []).filter((c) => allowed(c.permission)).map((c) => ({ id: c.to, label: c.label, onClick: go(c.to), leftSection: <Icon name="plus" /> }))),
        { id: 'light', label: 'Light colours', onClick: () => setColorScheme('light'), leftSection: <Icon name="sun" /> },
        { id: 'dark', label: 'Dark colours', onClick: () => setColorScheme('dark'), leftSection: <Icon name="moon" /> },
        { id: 'auto', label: 'Colours of the system', onClick: () => setColorScheme('auto'), leftSection: <Icon name="sun" /> },
      ],
    },
  ]
  return <Spotlight attributes={{ content: { 'aria-label': 'Command palette' } }} actions={actions} shortcut={['mod + K']} tagsToIgnore={[]} triggerOnContentEditable nothingFound="Nothing has this name" highlightQuery scrollable maxHeight={420} searchProps={{ placeholder: 'Go to …', 'aria-label': 'Command', leftSection: <Icon name="search" /> }} />
}
