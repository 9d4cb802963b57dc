import { Anchor, Button, Menu, NavLink, type AnchorProps, type ButtonProps, type MenuItemProps, type NavLinkProps } from '@mantine/core'
import { createLink } from '@tanstack/react-router'
import type { ReactNode, Ref } from 'react'

/** Mantine's components as links to screens, with typed addresses: <ButtonLink to="/segments/$id" params={{ id }}>. */

type Linked<P> = Omit<P, 'href' | 'component'> & { ref?: Ref<HTMLAnchorElement>; children?: ReactNode }

export const AnchorLink = createLink((props: Linked<AnchorProps>) => <Anchor {...props} />)
export const ButtonLink = createLink((props: Linked<ButtonProps>) => <Button component="a" {...props} />)
export const MenuLink = createLink((props: Linked<MenuItemProps>) => <Menu.Item component="a" {...props} />)
export const NavigationLink = createLink((props: Linked<NavLinkProps> & { 'aria-current'?: 'page' }) => <NavLink component="a" {...props} />)
